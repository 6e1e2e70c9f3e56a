// Memory pools and allocation in stream order.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>

#include "runtime/call.hpp"
#include "runtime/graph.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream_work.hpp"

using namespace tessera::emulator;

namespace {

cudaMemPool_t handle_of(Pool* pool) { return reinterpret_cast<cudaMemPool_t>(pool); }

Pool* find_pool(cudaMemPool_t handle)
{
    Runtime& runtime = Runtime::get();
    const std::scoped_lock lock(runtime.mutex);
    const auto found = runtime.pools.find(reinterpret_cast<Pool*>(handle));
    return found == runtime.pools.end() ? nullptr : *found;
}

template <class Body>
cudaError_t with_pool(const char* name, cudaMemPool_t handle, Body&& body)
{
    return call(name, [&]() -> cudaError_t {
        Pool* pool = find_pool(handle);
        return pool == nullptr ? cudaErrorInvalidValue : body(*pool);
    });
}

template <class Body>
cudaError_t with_device(const char* name, int index, Body&& body)
{
    return call(name, [&]() -> cudaError_t {
        Device* device = find_device(index);
        return device == nullptr ? cudaErrorInvalidDevice : body(*device);
    });
}

/// In a capture, memory belongs to the graph: its address is known at once; its nodes allocate and free it at each
/// launch.
cudaError_t allocate_in_graph(Stream& stream, void** pointer, std::size_t size)
{
    if (stream.capture->is_invalid) {
        return cudaErrorStreamCaptureInvalidated;
    }
    if (const cudaError_t status = allocate(pointer, size, {.origin = Origin::graph}); status != cudaSuccess) {
        return status;
    }
    Runtime& runtime = Runtime::get();
    stream.capture->graph->memory.push_back(
        std::make_shared<GraphMemory>(runtime.heap, reinterpret_cast<std::uint64_t>(*pointer)));
    AllocateWork work;
    work.parameters.bytesize = size;
    work.parameters.dptr = *pointer;
    work.parameters.poolProps.allocType = cudaMemAllocationTypePinned;
    work.parameters.poolProps.location = {cudaMemLocationTypeDevice, stream.device->index};
    return submit(stream, work);
}

cudaError_t allocate_async(const char* name, void** pointer, std::size_t size, Pool* pool, cudaStream_t handle)
{
    return call(name, [&]() -> cudaError_t {
        if (pointer == nullptr) {
            return cudaErrorInvalidValue;
        }
        std::unique_lock lock(Runtime::get().mutex);
        Stream* stream = find_stream(handle);
        if (stream == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (stream->capture != nullptr && size != 0) {
            return allocate_in_graph(*stream, pointer, size);
        }
        lock.unlock();  // it may wait for memory
        return allocate(pointer, size,
                        {.origin = Origin::pool, .pool = pool != nullptr ? pool : stream->device->current_pool});
    });
}

cudaError_t free_async(void* pointer, cudaStream_t handle)
{
    return call("cudaFreeAsync", release_call, [&]() -> cudaError_t {
        if (pointer == nullptr) {
            return cudaSuccess;
        }
        Runtime& runtime = Runtime::get();
        const std::scoped_lock lock(runtime.mutex);
        Stream* stream = find_stream(handle);
        if (stream == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        const auto address = reinterpret_cast<std::uint64_t>(pointer);
        const auto record = runtime.heap.find(address);
        if (record && record->origin == Origin::graph) {
            return submit(*stream, FreeWork{pointer});  // the graph keeps the address for the next launch
        }
        if (stream->capture != nullptr) {
            return cudaErrorInvalidValue;
        }
        if (!record || (record->origin != Origin::pool && record->origin != Origin::plain) ||
            !runtime.heap.begin_free(address)) {
            report_host(FindingKind::invalid_operand,
                        fmt::format("cudaFreeAsync was given a pointer that it cannot free: {}",
                                    record && record->free_is_pending ? "it was already freed"
                                                                      : runtime.memory.describe(address)));
            return cudaErrorInvalidValue;
        }
        enqueue(*stream, [&runtime, address] { runtime.heap.finish_free(address); });
        return cudaSuccess;
    });
}

cudaError_t get_or_set(Pool& pool, cudaMemPoolAttr attribute, void* value, bool sets)
{
    if (value == nullptr) {
        return cudaErrorInvalidValue;
    }
    const std::scoped_lock lock(Runtime::get().heap.mutex());
    const auto number = [&](std::uint64_t& field, bool is_settable) -> cudaError_t {
        auto& outside = *static_cast<std::uint64_t*>(value);
        if (!sets) {
            outside = field;
            return cudaSuccess;
        }
        if (!is_settable) {
            return cudaErrorInvalidValue;
        }
        field = outside;
        return cudaSuccess;
    };
    // High-water marks can only be reset to the current use.
    const auto high = [&](std::uint64_t& mark, std::uint64_t current) -> cudaError_t {
        if (sets) {
            mark = current;
            return *static_cast<std::uint64_t*>(value) == 0 ? cudaSuccess : cudaErrorInvalidValue;
        }
        return number(mark, false);
    };
    switch (attribute) {
        case cudaMemPoolReuseFollowEventDependencies:
        case cudaMemPoolReuseAllowOpportunistic:
        case cudaMemPoolReuseAllowInternalDependencies: {
            int& field = pool.reuse[attribute - cudaMemPoolReuseFollowEventDependencies];
            sets ? field = *static_cast<int*>(value) : *static_cast<int*>(value) = field;
            return cudaSuccess;
        }
        case cudaMemPoolAttrReleaseThreshold: return number(pool.release_threshold, true);
        case cudaMemPoolAttrReservedMemCurrent: return number(pool.reserved, false);
        case cudaMemPoolAttrReservedMemHigh: return high(pool.reserved_high, pool.reserved);
        case cudaMemPoolAttrUsedMemCurrent: return number(pool.used, false);
        case cudaMemPoolAttrUsedMemHigh: return high(pool.used_high, pool.used);
        default: return cudaErrorInvalidValue;
    }
}

Device* device_of(const cudaMemLocation* location)
{
    return location == nullptr || location->type != cudaMemLocationTypeDevice ? nullptr : find_device(location->id);
}

}  // namespace

extern "C" {

/// The pool of the memory at `address`; null if none. The runtime has no call for this; cuPointerGetAttribute returns
/// it.
cudaMemPool_t tessera_emulator_pool_of(const void* address)
{
    const auto record = Runtime::get().heap.find_containing(reinterpret_cast<std::uint64_t>(address));
    if (!record) {
        return nullptr;
    }
    if (record->origin == Origin::graph) {
        return handle_of(&find_device(record->device)->default_pool);
    }
    return record->origin == Origin::pool && record->pool != nullptr ? handle_of(record->pool) : nullptr;
}

/// Start and size of the allocation that contains `address`; false if there is none. The runtime has no call for this;
/// cuMemGetAddressRange returns it.
bool tessera_emulator_range_of(const void* address, std::uint64_t* start, std::uint64_t* size)
{
    const auto at = reinterpret_cast<std::uint64_t>(address);
    const Heap& heap = Runtime::get().heap;
    const auto first = heap.start_of(at);
    const auto record = heap.find_containing(at);
    if (first && record) {
        *start = *first;
        *size = record->size;
    }
    return first && record;
}

cudaError_t cudaMallocAsync(void** pointer, size_t size, cudaStream_t stream)
{
    return allocate_async("cudaMallocAsync", pointer, size, nullptr, stream);
}
cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t size, cudaStream_t stream)
{
    return allocate_async("cudaMallocAsync", pointer, size, nullptr, per_thread(stream));
}
cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) { return free_async(pointer, stream); }
cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) { return free_async(pointer, per_thread(stream)); }
cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t size, cudaMemPool_t handle, cudaStream_t stream)
{
    Pool* pool = find_pool(handle);
    if (pool == nullptr) {
        return call("cudaMallocFromPoolAsync", [] { return cudaErrorInvalidValue; });
    }
    return allocate_async("cudaMallocFromPoolAsync", pointer, size, pool, stream);
}
cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t size, cudaMemPool_t handle, cudaStream_t stream)
{
    return cudaMallocFromPoolAsync(pointer, size, handle, per_thread(stream));
}

cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int index)
{
    return with_device("cudaDeviceGetDefaultMemPool", index, [&](Device& device) -> cudaError_t {
        if (pool == nullptr) {
            return cudaErrorInvalidValue;
        }
        *pool = handle_of(&device.default_pool);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int index)
{
    return with_device("cudaDeviceGetMemPool", index, [&](Device& device) -> cudaError_t {
        if (pool == nullptr) {
            return cudaErrorInvalidValue;
        }
        *pool = handle_of(device.current_pool);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetMemPool(int index, cudaMemPool_t handle)
{
    return with_device("cudaDeviceSetMemPool", index, [&](Device& device) -> cudaError_t {
        Pool* pool = find_pool(handle);
        if (pool == nullptr || pool->device != device.index) {
            return cudaErrorInvalidValue;
        }
        device.current_pool = pool;
        return cudaSuccess;
    });
}

cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType /*type*/)
{
    return call("cudaMemGetDefaultMemPool", [&]() -> cudaError_t {
        Device* device = device_of(location);
        if (pool == nullptr || device == nullptr) {
            return cudaErrorInvalidValue;
        }
        *pool = handle_of(&device->default_pool);
        return cudaSuccess;
    });
}

cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location, cudaMemAllocationType /*type*/)
{
    return call("cudaMemGetMemPool", [&]() -> cudaError_t {
        Device* device = device_of(location);
        if (pool == nullptr || device == nullptr) {
            return cudaErrorInvalidValue;
        }
        *pool = handle_of(device->current_pool);
        return cudaSuccess;
    });
}

cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType /*type*/, cudaMemPool_t pool)
{
    return cudaDeviceSetMemPool(location == nullptr ? -1 : location->id, pool);
}

cudaError_t cudaMemPoolCreate(cudaMemPool_t* handle, const cudaMemPoolProps* properties)
{
    return call("cudaMemPoolCreate", [&]() -> cudaError_t {
        if (handle == nullptr || properties == nullptr || properties->allocType != cudaMemAllocationTypePinned) {
            return cudaErrorInvalidValue;
        }
        if (device_of(&properties->location) == nullptr) {
            return properties->location.type == cudaMemLocationTypeDevice ? cudaErrorInvalidDevice
                                                                          : cudaErrorNotSupported;
        }
        if (properties->handleTypes != cudaMemHandleTypeNone) {
            return cudaErrorNotSupported;
        }
        auto* pool = new Pool;
        pool->device = properties->location.id;
        pool->limit = properties->maxSize;
        Runtime& runtime = Runtime::get();
        const std::scoped_lock lock(runtime.mutex);
        runtime.pools.insert(pool);
        *handle = handle_of(pool);
        return cudaSuccess;
    });
}

/// A pool stays while it has allocations. Its record is small, so it is never removed.
cudaError_t cudaMemPoolDestroy(cudaMemPool_t handle)
{
    return with_pool("cudaMemPoolDestroy", handle, [](Pool& pool) -> cudaError_t {
        Runtime& runtime = Runtime::get();
        const std::scoped_lock lock(runtime.mutex);
        if (pool.is_default) {
            return cudaErrorInvalidValue;
        }
        Device& device = *find_device(pool.device);
        if (device.current_pool == &pool) {
            device.current_pool = &device.default_pool;
        }
        runtime.pools.erase(&pool);
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolTrimTo(cudaMemPool_t handle, size_t keep)
{
    return with_pool("cudaMemPoolTrimTo", handle, [&](Pool& pool) {
        Runtime::get().heap.trim(pool, keep);
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value)
{
    return with_pool("cudaMemPoolSetAttribute", handle,
                     [&](Pool& pool) { return get_or_set(pool, attribute, value, true); });
}

cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t handle, cudaMemPoolAttr attribute, void* value)
{
    return with_pool("cudaMemPoolGetAttribute", handle,
                     [&](Pool& pool) { return get_or_set(pool, attribute, value, false); });
}

cudaError_t cudaMemPoolSetAccess(cudaMemPool_t handle, const cudaMemAccessDesc* descriptions, size_t count)
{
    return with_pool("cudaMemPoolSetAccess", handle, [&](Pool& pool) -> cudaError_t {
        for (std::size_t i = 0; i < count; ++i) {
            if (device_of(&descriptions[i].location) == nullptr) {
                return cudaErrorInvalidDevice;
            }
            if (descriptions[i].location.id == pool.device &&
                descriptions[i].flags != cudaMemAccessFlagsProtReadWrite) {
                return cudaErrorInvalidDevice;
            }
            pool.access[descriptions[i].location.id] = descriptions[i].flags;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t handle, cudaMemLocation* location)
{
    return with_pool("cudaMemPoolGetAccess", handle, [&](Pool& pool) -> cudaError_t {
        if (flags != nullptr && location != nullptr && location->type == cudaMemLocationTypeHost) {
            *flags = cudaMemAccessFlagsProtNone;  // every pool is a device's
            return cudaSuccess;
        }
        const Device* device = device_of(location);
        if (flags == nullptr || device == nullptr) {
            return cudaErrorInvalidValue;
        }
        const auto found = pool.access.find(device->index);
        *flags = device->index == pool.device ? cudaMemAccessFlagsProtReadWrite
                 : found == pool.access.end() ? cudaMemAccessFlagsProtNone
                                              : static_cast<cudaMemAccessFlags>(found->second);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGraphMemTrim(int index)
{
    return with_device("cudaDeviceGraphMemTrim", index, [](Device&) { return cudaSuccess; });
}

cudaError_t cudaDeviceGetGraphMemAttribute(int index, cudaGraphMemAttributeType attribute, void* value)
{
    return with_device("cudaDeviceGetGraphMemAttribute", index, [&](Device& device) -> cudaError_t {
        if (value == nullptr || attribute > cudaGraphMemAttrReservedMemHigh) {
            return cudaErrorInvalidValue;
        }
        std::uint64_t used = 0;
        for (const auto& [address, record] : Runtime::get().heap.living()) {
            used += record.origin == Origin::graph && record.device == device.index ? record.size : 0;
        }
        device.graph_memory_high = std::max(device.graph_memory_high, used);
        const bool is_high = attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh;
        *static_cast<std::uint64_t*>(value) = is_high ? device.graph_memory_high : used;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetGraphMemAttribute(int index, cudaGraphMemAttributeType attribute, void* value)
{
    return with_device("cudaDeviceSetGraphMemAttribute", index, [&](Device& device) -> cudaError_t {
        const bool is_high = attribute == cudaGraphMemAttrUsedMemHigh || attribute == cudaGraphMemAttrReservedMemHigh;
        if (value == nullptr || !is_high || *static_cast<std::uint64_t*>(value) != 0) {
            return cudaErrorInvalidValue;
        }
        device.graph_memory_high = 0;
        return cudaSuccess;
    });
}

}  // extern "C"
