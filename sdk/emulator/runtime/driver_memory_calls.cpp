// Driver calls for memory, on top of the runtime's public functions. Compiled twice, as driver_calls.cpp.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>

#include "runtime/driver_call.hpp"

using namespace tessera::emulator;

extern "C" cudaMemPool_t tessera_emulator_pool_of(const void* address);  // pool_calls.cpp

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

}  // namespace

extern "C" {

CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t size)
{
    return size == 0 ? CUDA_ERROR_INVALID_VALUE : on_runtime([&] { return cudaMalloc(cast<void**>(address), size); });
}

CUresult cuMemAllocManaged(CUdeviceptr* address, size_t size, unsigned flags)
{
    static_assert(CU_MEM_ATTACH_GLOBAL == cudaMemAttachGlobal && CU_MEM_ATTACH_HOST == cudaMemAttachHost);
    return size == 0 ? CUDA_ERROR_INVALID_VALUE
                     : on_runtime([&] { return cudaMallocManaged(cast<void**>(address), size, flags); });
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    return on_runtime([&] { return cudaFree(cast<void*>(address)); });
}

CUresult cuMemGetInfo_v2(size_t* free, size_t* total)
{
    return on_runtime([&] { return cudaMemGetInfo(free, total); });
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
    cudaPointerAttributes all;
    const CUresult status = on_runtime([&] { return cudaPointerGetAttributes(&all, cast<void*>(address)); });
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (all.type == cudaMemoryTypeUnregistered) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (attribute) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
            *static_cast<CUmemorytype*>(value) =
                all.type == cudaMemoryTypeHost ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
            *static_cast<CUdeviceptr*>(value) = cast<CUdeviceptr>(all.devicePointer);
            break;
        case CU_POINTER_ATTRIBUTE_HOST_POINTER: *static_cast<void**>(value) = all.hostPointer; break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int*>(value) = all.device; break;
        case CU_POINTER_ATTRIBUTE_IS_MANAGED:
            *static_cast<unsigned*>(value) = all.type == cudaMemoryTypeManaged ? 1 : 0;
            break;
        case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
            *static_cast<CUmemoryPool*>(value) = tessera_emulator_pool_of(cast<const void*>(address));
            break;
        case CU_POINTER_ATTRIBUTE_CONTEXT: *static_cast<CUcontext*>(value) = context_of(all.device); break;
        default: return CUDA_ERROR_NOT_SUPPORTED;
    }
    return CUDA_SUCCESS;
}

}  // extern "C"
