// Driver calls that allocate memory, on top of the runtime's public functions. Compiled twice, as driver_calls.cpp.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include "runtime/driver_call.hpp"

using namespace tessera::emulator;

namespace {

// Pools' properties and locations have one layout and one set of numbers in both APIs.
static_assert(sizeof(CUmemPoolProps) == sizeof(cudaMemPoolProps) && sizeof(CUmemLocation) == sizeof(cudaMemLocation) &&
              sizeof(CUmemAccessDesc) == sizeof(cudaMemAccessDesc));
static_assert(CU_MEMPOOL_ATTR_RELEASE_THRESHOLD == static_cast<int>(cudaMemPoolAttrReleaseThreshold) &&
              CU_MEMPOOL_ATTR_USED_MEM_HIGH == static_cast<int>(cudaMemPoolAttrUsedMemHigh));
static_assert(CU_MEM_LOCATION_TYPE_DEVICE == static_cast<int>(cudaMemLocationTypeDevice) &&
              CU_MEM_ALLOCATION_TYPE_PINNED == static_cast<int>(cudaMemAllocationTypePinned));

cudaMemLocation* location_of(CUmemLocation* location) { return reinterpret_cast<cudaMemLocation*>(location); }

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

CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width, size_t height, unsigned element_size)
{
    if (element_size != 4 && element_size != 8 && element_size != 16) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return on_runtime([&] { return cudaMallocPitch(cast<void**>(address), pitch, width, height); });
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t size, CUmemLocation location, unsigned flags,
                               CUstream stream)
{
    return on_runtime([&] {
        return cudaMemPrefetchAsync(cast<void*>(address), size, *location_of(&location), flags, stream_of(stream));
    });
}

CUresult cuMemAdvise_v2(CUdeviceptr address, size_t size, CUmem_advise advice, CUmemLocation location)
{
    return on_runtime([&] {
        return cudaMemAdvise(cast<void*>(address), size, static_cast<cudaMemoryAdvise>(advice),
                             *location_of(&location));
    });
}

// Memory of the host.

CUresult cuMemAllocHost_v2(void** address, size_t size)
{
    return size == 0 ? CUDA_ERROR_INVALID_VALUE : on_runtime([&] { return cudaMallocHost(address, size); });
}

CUresult cuMemHostAlloc(void** address, size_t size, unsigned flags)
{
    static_assert(CU_MEMHOSTALLOC_WRITECOMBINED == cudaHostAllocWriteCombined);
    return size == 0 ? CUDA_ERROR_INVALID_VALUE : on_runtime([&] { return cudaHostAlloc(address, size, flags); });
}

CUresult cuMemFreeHost(void* address)
{
    return on_runtime([&] { return cudaFreeHost(address); });
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* device, void* host, unsigned flags)
{
    return on_runtime([&] { return cudaHostGetDevicePointer(cast<void**>(device), host, flags); });
}

CUresult cuMemHostGetFlags(unsigned* flags, void* address)
{
    return on_runtime([&] { return cudaHostGetFlags(flags, address); });
}

CUresult cuMemHostRegister_v2(void* address, size_t size, unsigned flags)
{
    static_assert(CU_MEMHOSTREGISTER_READ_ONLY == cudaHostRegisterReadOnly);
    return on_runtime([&] { return cudaHostRegister(address, size, flags); });
}

CUresult cuMemHostUnregister(void* address)
{
    return on_runtime([&] { return cudaHostUnregister(address); });
}

// Pools, and allocation in stream order.

CUresult cuMemAllocAsync(CUdeviceptr* address, size_t size, CUstream stream)
{
    return on_runtime([&] { return cudaMallocAsync(cast<void**>(address), size, stream_of(stream)); });
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr* address, size_t size, CUmemoryPool pool, CUstream stream)
{
    return on_runtime([&] { return cudaMallocFromPoolAsync(cast<void**>(address), size, pool, stream_of(stream)); });
}

CUresult cuMemFreeAsync(CUdeviceptr address, CUstream stream)
{
    return on_runtime([&] { return cudaFreeAsync(cast<void*>(address), stream_of(stream)); });
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device)
{
    return on_runtime([&] { return cudaDeviceGetDefaultMemPool(pool, device); });
}

CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device)
{
    return on_runtime([&] { return cudaDeviceGetMemPool(pool, device); });
}

CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    return on_runtime([&] { return cudaDeviceSetMemPool(device, pool); });
}

CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type)
{
    return on_runtime([&] {
        return cudaMemGetDefaultMemPool(pool, location_of(location), static_cast<cudaMemAllocationType>(type));
    });
}

CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location, CUmemAllocationType type)
{
    return on_runtime(
        [&] { return cudaMemGetMemPool(pool, location_of(location), static_cast<cudaMemAllocationType>(type)); });
}

CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type, CUmemoryPool pool)
{
    return on_runtime(
        [&] { return cudaMemSetMemPool(location_of(location), static_cast<cudaMemAllocationType>(type), pool); });
}

CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* properties)
{
    return on_runtime([&] { return cudaMemPoolCreate(pool, reinterpret_cast<const cudaMemPoolProps*>(properties)); });
}

CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
    return on_runtime([&] { return cudaMemPoolDestroy(pool); });
}

CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
    return on_runtime([&] { return cudaMemPoolTrimTo(pool, keep); });
}

CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value)
{
    return on_runtime([&] { return cudaMemPoolGetAttribute(pool, static_cast<cudaMemPoolAttr>(attribute), value); });
}

CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute, void* value)
{
    return on_runtime([&] { return cudaMemPoolSetAttribute(pool, static_cast<cudaMemPoolAttr>(attribute), value); });
}

CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool, CUmemLocation* location)
{
    return on_runtime([&] {
        return cudaMemPoolGetAccess(reinterpret_cast<cudaMemAccessFlags*>(flags), pool, location_of(location));
    });
}

CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* descriptions, size_t count)
{
    return on_runtime(
        [&] { return cudaMemPoolSetAccess(pool, reinterpret_cast<const cudaMemAccessDesc*>(descriptions), count); });
}

}  // extern "C"
