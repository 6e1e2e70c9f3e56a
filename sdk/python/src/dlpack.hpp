#pragma once

/// The structures of DLPack's ABI, version 1 (https://dmlc.github.io/dlpack), and of the function table that a framework may
/// publish as `__dlpack_c_exchange_api__` of its tensor type. PyTorch has it since 2.10: reading a tensor by it takes tens of
/// nanoseconds, by `__dlpack__` microseconds.

#include <cstdint>

namespace tessera::python::dlpack {

enum DeviceType : std::int32_t { cpu = 1, cuda = 2, cuda_host = 3, cuda_managed = 13 };

struct Device {
    std::int32_t type;
    std::int32_t id;
};

struct DataType {
    std::uint8_t code;
    std::uint8_t bits;
    std::uint16_t lanes;
};

struct Tensor {
    void* data;
    Device device;
    std::int32_t ndim;
    DataType dtype;
    std::int64_t* shape;
    std::int64_t* strides;  ///< in elements; null: without gaps, the last dimension first
    std::uint64_t byte_offset;
};

struct ManagedTensor {
    Tensor tensor;
    void* context;
    void (*deleter)(ManagedTensor* self);
};

struct Version {
    std::uint32_t major;
    std::uint32_t minor;
};

inline constexpr std::uint64_t read_only = 1;  ///< a bit of `flags`

struct ManagedTensorVersioned {
    Version version;
    void* context;
    void (*deleter)(ManagedTensorVersioned* self);
    std::uint64_t flags;
    Tensor tensor;
};

struct ExchangeApi {
    Version version;
    ExchangeApi* previous;  ///< of an earlier major version, or null
    /// Allocates what `prototype` says, in the framework's own way. Returns 0, or calls `set_error`.
    int (*allocate)(Tensor* prototype, ManagedTensorVersioned** out, void* error_context,
                    void (*set_error)(void* error_context, const char* kind, const char* message));
    int (*export_tensor)(void* object, ManagedTensorVersioned** out);
    int (*to_object)(ManagedTensorVersioned* tensor, void** out);  ///< takes the tensor
    int (*borrow_tensor)(void* object, Tensor* out);               ///< may be null
    int (*current_stream)(DeviceType type, std::int32_t device, void** out);
};

}  // namespace tessera::python::dlpack
