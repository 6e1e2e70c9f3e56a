#include "tessera/tensor_map.hpp"

#include <cuda.h>
#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <limits>

#include "matrix/encode_for_launch.hpp"

namespace tessera::detail {
namespace {

static_assert(sizeof(TensorMapBits) == sizeof(CUtensorMap) && alignof(TensorMapBits) >= alignof(CUtensorMap));
static_assert(tensor_map_type<bf16> == CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
static_assert(tensor_map_type<f16> == CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
static_assert(tensor_map_type<f32> == CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
static_assert(tensor_map_type<double> == CU_TENSOR_MAP_DATA_TYPE_FLOAT64);

constexpr std::uint64_t global_alignment = 16;                   // bytes; alignment of base address and strides
constexpr std::uint64_t stride_limit = std::uint64_t{1} << 40U;  // bytes, exclusive
constexpr std::uint64_t extent_limit = std::uint64_t{1} << 32U;  // elements, inclusive
constexpr std::uint32_t box_limit = 256;                         // elements, inclusive
constexpr std::uint64_t small_tensor_bytes = std::uint64_t{128} << 10U;

using Encoder = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*, const cuuint64_t*,
                             const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                             CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

/// The driver's encoder, once it was found: asking costs as much as a launch. A failure is not kept, so that a later
/// launch may succeed.
constinit std::atomic<Encoder> known_encoder{nullptr};

/// Obtained through the runtime, so that the SDK need not link libcuda.
cudaError_t find_encoder(Encoder& encoder)
{
    encoder = known_encoder.load(std::memory_order_relaxed);  // a function's address needs no order
    if (encoder != nullptr) [[likely]] {
        return cudaSuccess;
    }
    void* address = nullptr;
    cudaDriverEntryPointQueryResult found{};
    const cudaError_t status =
        cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &address, 12000, cudaEnableDefault, &found);
    if (status != cudaSuccess) {
        return status;
    }
    if (found != cudaDriverEntryPointSuccess || address == nullptr) {
        return cudaErrorNotSupported;
    }
    encoder = reinterpret_cast<Encoder>(address);
    known_encoder.store(encoder, std::memory_order_relaxed);
    return cudaSuccess;
}

bool is_floating(int type)
{
    return type >= CU_TENSOR_MAP_DATA_TYPE_FLOAT16 && type <= CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
}

class Refusals {
public:
    template <class... Arguments>
    void add(fmt::format_string<Arguments...> format, Arguments&&... arguments)
    {
        if (!text_.empty()) {
            text_ += '\n';
        }
        fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    }
    std::string take() { return std::move(text_); }

private:
    std::string text_;
};

/// Returns the bytes from the first to one past the last element; saturates.
std::uint64_t span_bytes(const TensorMapRequest& request)
{
    std::uint64_t span = request.extents[0] * request.element_bytes;
    for (std::uint32_t i = 1; i < request.rank; ++i) {
        std::uint64_t step = 0;
        if (__builtin_mul_overflow(request.strides[i - 1], request.extents[i] - 1, &step) ||
            __builtin_add_overflow(span, step, &span)) {
            return std::numeric_limits<std::uint64_t>::max();
        }
    }
    return span;
}

std::string dump(const TensorMapRequest& request)
{
    std::string text = fmt::format("the request: elements of {}, rank {}, address {}",
                                   request.element_name.empty() ? fmt::format("the driver's type {}", request.type)
                                                                : std::string(request.element_name),
                                   request.rank, fmt::ptr(request.data));
    for (std::uint32_t i = 0; i < std::min<std::uint32_t>(request.rank, max_tensor_rank); ++i) {
        text += fmt::format("; dimension {}: extent {}, box {}", i, request.extents[i], request.box[i]);
        text += i == 0 ? std::string() : fmt::format(", stride {} bytes", request.strides[i - 1]);
    }
    return text + fmt::format("; swizzle {} bytes", swizzle_span_bytes(request.swizzle));
}

}  // namespace

std::string tensor_map_refusals(const TensorMapRequest& request)
{
    Refusals refusals;
    if (request.rank < 1 || request.rank > max_tensor_rank) {
        refusals.add("the tensor has {} dimensions; a tensor map has 1 to {}", request.rank, max_tensor_rank);
        return refusals.take();  // the arrays below have no room for more
    }
    const auto address = std::bit_cast<std::uintptr_t>(request.data);
    if (request.data == nullptr) {
        refusals.add("the tensor's address is null");
    } else if (address % global_alignment != 0) {
        refusals.add("the tensor's address {} is not a multiple of {} bytes", fmt::ptr(request.data), global_alignment);
    }
    for (std::uint32_t i = 0; i < request.rank; ++i) {
        if (request.extents[i] == 0) {
            refusals.add("the extent of dimension {} is 0; a tensor map needs at least 1 element", i);
        } else if (request.extents[i] > extent_limit) {
            refusals.add("the extent of dimension {} is {}; a tensor map takes at most 2^32", i, request.extents[i]);
        }
        if (request.box[i] < 1 || request.box[i] > box_limit) {
            refusals.add("the box has {} elements in dimension {}; it may have 1 to {}", request.box[i], i, box_limit);
        }
    }
    for (std::uint32_t i = 0; i + 1 < request.rank; ++i) {
        if (request.strides[i] % global_alignment != 0) {
            refusals.add(
                "the stride of dimension {} is {} bytes, not a multiple of {}: pad the leading dimension to a "
                "multiple of {} elements",
                i + 1, request.strides[i], global_alignment, global_alignment / request.element_bytes);
        } else if (request.strides[i] >= stride_limit) {
            refusals.add("the stride of dimension {} is {} bytes; it must be below 2^40", i + 1, request.strides[i]);
        }
    }
    const std::uint32_t inner_bytes = request.box[0] * request.element_bytes;
    if (inner_bytes % global_alignment != 0) {
        refusals.add("the box is {} bytes wide in dimension 0, not a multiple of {}", inner_bytes, global_alignment);
    }
    std::uint64_t box_bytes = request.element_bytes;
    bool extents_are_valid = true;  // if not, the byte count says nothing and may overflow
    for (std::uint32_t i = 0; i < request.rank; ++i) {
        extents_are_valid = extents_are_valid && request.box[i] <= box_limit;
        box_bytes *= std::min(request.box[i], box_limit);
    }
    if (extents_are_valid && box_bytes > max_box_bytes) {
        refusals.add("the box has {} bytes; it may have at most {}, the shared memory of an SM", box_bytes,
                     max_box_bytes);
    }
    if (request.swizzle != Swizzle::none && inner_bytes > swizzle_span_bytes(request.swizzle)) {
        refusals.add("the box is {} bytes wide in dimension 0; a {}-byte swizzle takes at most {}", inner_bytes,
                     swizzle_span_bytes(request.swizzle), swizzle_span_bytes(request.swizzle));
    }
    if (request.out_of_bounds == OutOfBounds::nan && !is_floating(request.type)) {
        refusals.add("OutOfBounds::nan needs elements of a floating-point type, not of {}",
                     request.element_name.empty() ? "integers" : request.element_name);
    }
    return refusals.take();
}

cudaError_t encode_tensor_map_unchecked(const TensorMapRequest& request, TensorMapBits& bits, int* driver_status)
{
    Encoder encoder = nullptr;
    const cudaError_t found = find_encoder(encoder);
    if (found != cudaSuccess) {
        return found;
    }
    constexpr std::array<cuuint32_t, max_tensor_rank> element_strides{1, 1, 1, 1, 1};
    CUtensorMap map{};
    const CUresult status =
        encoder(&map, static_cast<CUtensorMapDataType>(request.type), request.rank, const_cast<void*>(request.data),
                request.extents.data(), request.strides.data(), request.box.data(), element_strides.data(),
                CU_TENSOR_MAP_INTERLEAVE_NONE, static_cast<CUtensorMapSwizzle>(request.swizzle),
                static_cast<CUtensorMapL2promotion>(request.promotion),
                static_cast<CUtensorMapFloatOOBfill>(request.out_of_bounds));
    bits = std::bit_cast<TensorMapBits>(map);
    *driver_status = status;
    return cudaSuccess;
}

void forget_tensor_map_encoder() noexcept { known_encoder.store(nullptr, std::memory_order_relaxed); }

CallStatus encode_for_launch(const DeviceProperties& device, const TensorMapRequest& request, TensorMapBits& bits)
{
    bits = {};
    int driver_status = 0;
    if (const cudaError_t found = encode_tensor_map_unchecked(request, bits, &driver_status); found != cudaSuccess) {
        return {found, "cudaGetDriverEntryPointByVersion of cuTensorMapEncodeTiled"};
    }
    mend_small_tensor_map(device, request, bits);
    // The encoder's CUresult values have the same numbers as the runtime's errors.
    return {static_cast<cudaError_t>(driver_status), "cuTensorMapEncodeTiled"};
}

TensorMapBits encode_tensor_map(const Device& device, const TensorMapRequest& request,
                                const std::source_location& caller)
{
    constexpr std::string_view operation = "TensorMap::encode";
    if (!device.properties().has_tensor_maps) {
        raise(ErrorCode::unsupported_device, operation, caller,
              fmt::format("{} has compute capability {}.{}; tensor maps need 9.0 or later", device.properties().name,
                          device.properties().compute_capability_major, device.properties().compute_capability_minor),
              "a device of compute capability 9.0 or later; ordinary loads and stores on this one");
    }
    if (const std::string refusals = tensor_map_refusals(request); !refusals.empty()) {
        raise(ErrorCode::tensor_map_refused, operation, caller, refusals + '\n' + dump(request));
    }
    TensorMapBits bits{};
    int driver_status = 0;
    const cudaError_t found = encode_tensor_map_unchecked(request, bits, &driver_status);
    if (found == cudaErrorNotSupported) {
        raise(ErrorCode::no_device, operation, caller, "the driver has no cuTensorMapEncodeTiled",
              "a driver for CUDA 13 or later");
    }
    check(found, "cudaGetDriverEntryPointByVersion", operation, caller);
    if (driver_status != CUDA_SUCCESS) {
        raise(ErrorCode::tensor_map_refused, operation, caller,
              fmt::format("cuTensorMapEncodeTiled returned {} for a request that breaks no documented rule\n{}",
                          driver_status, dump(request)));
    }
    mend_small_tensor_map(device.properties(), request, bits);
    return bits;
}

void mend_small_tensor_map(const DeviceProperties& device, const TensorMapRequest& request,
                           TensorMapBits& bits) noexcept
{
    if (device.compute_capability_major >= 10 && span_bytes(request) < small_tensor_bytes) {
        bits.words[1] &= ~(std::uint64_t{1} << 21U);  // bit 64 + 21 = 85
    }
}

}  // namespace tessera::detail
