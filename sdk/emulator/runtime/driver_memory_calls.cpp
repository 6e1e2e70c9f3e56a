// Driver calls for copies, fills and pointers, on top of the runtime's public functions. Compiled twice, as driver_calls.cpp.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "runtime/driver_call.hpp"

using namespace tessera::emulator;

extern "C" cudaMemPool_t tessera_emulator_pool_of(const void* address);  // pool_calls.cpp
extern "C" bool tessera_emulator_range_of(const void* address, std::uint64_t* start, std::uint64_t* size);  // the same

namespace {

/// Fills `count` elements with `value`. The runtime only fills bytes: byte i of all elements is one column of a plane.
template <class Value>
cudaError_t fill_elements(CUdeviceptr to, Value value, std::size_t count, CUstream stream, bool wait)
{
    if (to % sizeof(Value) != 0) {
        return cudaErrorInvalidValue;
    }
    cudaError_t status = cudaSuccess;
    for (std::size_t i = 0; i < sizeof(Value) && status == cudaSuccess; ++i) {
        const int byte = static_cast<int>(value >> (8 * i) & 0xFF);
        void* const column = cast<void*>(to + i);
        status = wait ? cudaMemset2D(column, sizeof(Value), byte, 1, count)
                      : cudaMemset2DAsync(column, sizeof(Value), byte, 1, count, stream_of(stream));
    }
    return status;
}

bool is_known(CUdeviceptr address)
{
    cudaPointerAttributes all;
    return cudaPointerGetAttributes(&all, cast<void*>(address)) == cudaSuccess &&
           all.type != cudaMemoryTypeUnregistered;
}

/// Zero for an address that CUDA does not know.
CUresult pointer_attribute(void* value, CUpointer_attribute attribute, CUdeviceptr address)
{
    if (value == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    cudaPointerAttributes all;
    const CUresult status = on_runtime([&] { return cudaPointerGetAttributes(&all, cast<void*>(address)); });
    if (status != CUDA_SUCCESS) {
        return status;
    }
    const bool known = all.type != cudaMemoryTypeUnregistered;
    std::uint64_t start = 0, size = 0;
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *static_cast<unsigned*>(value) = !known                           ? 0
                                             : all.type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST
                                                                              : CU_MEMORYTYPE_DEVICE;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            *static_cast<CUdeviceptr*>(value) = known ? cast<CUdeviceptr>(all.devicePointer) : 0;
            break;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER: *static_cast<void**>(value) = known ? all.hostPointer : nullptr; break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(value) = known ? all.device : 0; break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            *static_cast<unsigned*>(value) = all.type == cudaMemoryTypeManaged ? 1 : 0;
            break;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            *static_cast<CUmemoryPool*>(value) = tessera_emulator_pool_of(cast<const void*>(address));
            break;
        case CU_POINTER_ATTRIBUTE_CONTEXT:
            *static_cast<CUcontext*>(value) = known ? context_of(all.device) : nullptr;
            break;
        case CU_POINTER_ATTRIBUTE_MAPPED: *static_cast<unsigned*>(value) = known ? 1 : 0; break;
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            tessera_emulator_range_of(cast<const void*>(address), &start, &size);
            *static_cast<std::uint64_t*>(value) = attribute == CU_POINTER_ATTRIBUTE_RANGE_SIZE ? size : start;
            break;
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

}  // namespace

extern "C" {

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    return on_runtime([&] { return cudaMemcpy(cast<void*>(to), cast<void*>(from), size, cudaMemcpyDefault); });
}

CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    return on_runtime([&] {
        return cudaMemcpyAsync(cast<void*>(to), cast<void*>(from), size, cudaMemcpyDefault, stream_of(stream));
    });
}

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size)
{
    return on_runtime([&] {
        return cudaMemcpyPeer(cast<void*>(to), device_of(to_context), cast<void*>(from), device_of(from_context), size);
    });
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t size,
                           CUstream stream)
{
    return on_runtime([&] {
        return cudaMemcpyPeerAsync(cast<void*>(to), device_of(to_context), cast<void*>(from), device_of(from_context),
                                   size, stream_of(stream));
    });
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, size_t* sizes, size_t count,
                               CUmemcpyAttributes* attributes, size_t* first_copies, size_t attribute_count,
                               CUstream stream)
{
    static_assert(sizeof(CUmemcpyAttributes) == sizeof(cudaMemcpyAttributes));
    return on_runtime([&] {
        return cudaMemcpyBatchAsync(reinterpret_cast<void**>(to), reinterpret_cast<const void**>(from), sizes, count,
                                    reinterpret_cast<cudaMemcpyAttributes*>(attributes), first_copies, attribute_count,
                                    stream_of(stream));
    });
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, size_t size)
{
    return on_runtime([&] { return cudaMemcpy(cast<void*>(to), from, size, cudaMemcpyHostToDevice); });
}

CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, size_t size)
{
    return on_runtime([&] { return cudaMemcpy(to, cast<void*>(from), size, cudaMemcpyDeviceToHost); });
}

CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t size)
{
    return on_runtime([&] { return cudaMemcpy(cast<void*>(to), cast<void*>(from), size, cudaMemcpyDeviceToDevice); });
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, size_t size, CUstream stream)
{
    return on_runtime(
        [&] { return cudaMemcpyAsync(cast<void*>(to), from, size, cudaMemcpyHostToDevice, stream_of(stream)); });
}

CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, size_t size, CUstream stream)
{
    return on_runtime(
        [&] { return cudaMemcpyAsync(to, cast<void*>(from), size, cudaMemcpyDeviceToHost, stream_of(stream)); });
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t size, CUstream stream)
{
    return on_runtime([&] {
        return cudaMemcpyAsync(cast<void*>(to), cast<void*>(from), size, cudaMemcpyDeviceToDevice, stream_of(stream));
    });
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, size_t count)
{
    return on_runtime([&] { return cudaMemset(cast<void*>(to), value, count); });
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t count, CUstream stream)
{
    return on_runtime([&] { return cudaMemsetAsync(cast<void*>(to), value, count, stream_of(stream)); });
}

CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, size_t count)
{
    return on_runtime([&] { return fill_elements(to, value, count, nullptr, true); });
}

CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, size_t count, CUstream stream)
{
    return on_runtime([&] { return fill_elements(to, value, count, stream, false); });
}

CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count)
{
    return on_runtime([&] { return fill_elements(to, value, count, nullptr, true); });
}

CUresult cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t count, CUstream stream)
{
    return on_runtime([&] { return fill_elements(to, value, count, stream, false); });
}

CUresult cuPointerGetAttribute(void* value, CUpointer_attribute attribute, CUdeviceptr address)
{
    const CUresult status = pointer_attribute(value, attribute, address);
    return status == CUDA_SUCCESS && !is_known(address) ? CUDA_ERROR_INVALID_VALUE : status;
}

/// Unlike for one attribute, an address that CUDA does not know is no error: its attributes are zero.
CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes, void** values, CUdeviceptr address)
{
    if (count == 0 || attributes == nullptr || values == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult status = CUDA_SUCCESS;
    for (unsigned i = 0; i < count && status == CUDA_SUCCESS; ++i) {
        status = pointer_attribute(values[i], attributes[i], address);
    }
    return status;
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* size, CUdeviceptr address)
{
    std::uint64_t start = 0, bytes = 0;
    if (!tessera_emulator_range_of(cast<const void*>(address), &start, &bytes)) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (base != nullptr) {
        *base = start;
    }
    if (size != nullptr) {
        *size = bytes;
    }
    return CUDA_SUCCESS;
}

}  // extern "C"
