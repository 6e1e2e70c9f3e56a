// Allocation and freeing, and queries about memory.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstdint>

#include "runtime/call.hpp"
#include "runtime/memory.hpp"
#include "runtime/stream_work.hpp"
#include "runtime/work.hpp"

using namespace tessera::emulator;

namespace {

std::uint64_t number_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }

/// The error and the finding of a pointer that cannot be freed.
cudaError_t refuse_free(const char* name, const void* pointer)
{
    const Runtime& runtime = Runtime::get();
    const auto record = runtime.heap.find(number_of(pointer));
    const std::string why = record && record->free_is_pending ? "it was already freed on a stream"
                                                              : runtime.memory.describe(number_of(pointer));
    report_host(FindingKind::invalid_operand, fmt::format("{} was given a pointer that it cannot free: {}", name, why));
    return cudaErrorInvalidValue;
}

constexpr std::uint64_t pitch_alignment = 512;

cudaError_t allocate_pitched(void** pointer, std::size_t* pitch, std::size_t width, std::size_t height,
                             std::size_t depth)
{
    if (pointer == nullptr || pitch == nullptr) {
        return cudaErrorInvalidValue;
    }
    *pointer = nullptr;
    *pitch = (width + pitch_alignment - 1) / pitch_alignment * pitch_alignment;
    std::size_t size = 0;
    if (__builtin_mul_overflow(*pitch, height, &size) || __builtin_mul_overflow(size, depth, &size)) {
        return cudaErrorMemoryAllocation;
    }
    return allocate(pointer, size, {.origin = Origin::plain});
}

cudaError_t allocate_host(const char* name, void** pointer, std::size_t size, unsigned flags)
{
    return call(name, [&]() -> cudaError_t {
        constexpr unsigned known = cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined;
        if (pointer == nullptr || (flags & ~known) != 0) {
            return cudaErrorInvalidValue;
        }
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        return allocate(pointer, size, {.origin = Origin::host, .flags = flags | cudaHostAllocMapped});
    });
}

}  // namespace

cudaError_t tessera::emulator::allocate(void** pointer, std::size_t size, HeapRecord record)
{
    *pointer = nullptr;
    if (size == 0) {
        return cudaSuccess;
    }
    Runtime& runtime = Runtime::get();
    Device& device = current_device();
    if (runtime.settings.options.check) {
        record.host = std::make_shared<const HostStack>(HostStack::here());
    }
    record.device = record.pool != nullptr ? record.pool->device : device.index;
    const std::uint64_t limit = find_device(record.device)->usable_memory();
    std::uint64_t address = runtime.heap.allocate(size, record, limit);
    if (address == 0 && size <= limit) {
        // What streams are about to free may be enough.
        for (const Position& position : all_positions(device)) {
            position.wait();
        }
        address = runtime.heap.allocate(size, record, limit);
    }
    *pointer = reinterpret_cast<void*>(address);
    return address == 0 ? cudaErrorMemoryAllocation : cudaSuccess;
}

extern "C" {

cudaError_t cudaMalloc(void** pointer, size_t size)
{
    return call("cudaMalloc", [&]() -> cudaError_t {
        if (pointer == nullptr) {
            return cudaErrorInvalidValue;
        }
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        return allocate(pointer, size, {.origin = Origin::plain});
    });
}

cudaError_t cudaMallocManaged(void** pointer, size_t size, unsigned flags)
{
    return call("cudaMallocManaged", [&]() -> cudaError_t {
        if (pointer == nullptr || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)) {
            return cudaErrorInvalidValue;
        }
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        return allocate(pointer, size, {.origin = Origin::managed, .flags = flags});
    });
}

cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height)
{
    return call("cudaMallocPitch", [&] { return allocate_pitched(pointer, pitch, width, height, 1); });
}

cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent)
{
    return call("cudaMalloc3D", [&]() -> cudaError_t {
        if (pitched == nullptr) {
            return cudaErrorInvalidValue;
        }
        pitched->xsize = extent.width;
        pitched->ysize = extent.height;
        return allocate_pitched(&pitched->ptr, &pitched->pitch, extent.width, extent.height, extent.depth);
    });
}

cudaError_t cudaFree(void* pointer)
{
    return call("cudaFree", release_call, [&]() -> cudaError_t {
        if (pointer == nullptr) {
            return cudaSuccess;
        }
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        Runtime& runtime = Runtime::get();
        const auto record = runtime.heap.find(number_of(pointer));
        if (record) {
            // Work in flight may use the memory: the call waits for it, like the runtime's.
            wait_for(*find_device(record->device));
        }
        if (record && record->origin == Origin::graph) {  // the graph keeps the address for the next launch
            perform(*find_device(record->device), FreeWork{pointer});
            return cudaSuccess;
        }
        return runtime.heap.free(number_of(pointer), {Origin::plain, Origin::pool, Origin::managed})
                   ? cudaSuccess
                   : refuse_free("cudaFree", pointer);
    });
}

cudaError_t cudaMallocHost(void** pointer, size_t size)
{
    return allocate_host("cudaMallocHost", pointer, size, cudaHostAllocDefault);
}

cudaError_t cudaHostAlloc(void** pointer, size_t size, unsigned flags)
{
    return allocate_host("cudaHostAlloc", pointer, size, flags);
}

cudaError_t cudaFreeHost(void* pointer)
{
    return call("cudaFreeHost", release_call, [&]() -> cudaError_t {
        if (pointer == nullptr) {
            return cudaSuccess;
        }
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        Runtime& runtime = Runtime::get();
        if (runtime.heap.find(number_of(pointer))) {
            for (const auto& device : runtime.devices) {
                wait_for(*device);
            }
        }
        return runtime.heap.free(number_of(pointer), {Origin::host}) ? cudaSuccess
                                                                     : refuse_free("cudaFreeHost", pointer);
    });
}

cudaError_t cudaHostRegister(void* pointer, size_t size, unsigned flags)
{
    return call("cudaHostRegister", [&]() -> cudaError_t {
        if (pointer == nullptr || size == 0) {
            return cudaErrorInvalidValue;
        }
        Runtime& runtime = Runtime::get();
        if (runtime.heap.find_containing(number_of(pointer)) ||
            runtime.heap.find_containing(number_of(pointer) + size - 1)) {
            return cudaErrorHostMemoryAlreadyRegistered;
        }
        runtime.heap.add_registered(pointer, size, flags | cudaHostRegisterMapped);
        return cudaSuccess;
    });
}

cudaError_t cudaHostUnregister(void* pointer)
{
    return call("cudaHostUnregister", release_call, [&]() -> cudaError_t {
        if (pointer == nullptr) {
            return cudaErrorInvalidValue;
        }
        Runtime& runtime = Runtime::get();
        for (const auto& device : runtime.devices) {
            wait_for(*device);
        }
        return runtime.heap.free(number_of(pointer), {Origin::registered}) ? cudaSuccess
                                                                           : cudaErrorHostMemoryNotRegistered;
    });
}

cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags)
{
    return call("cudaHostGetDevicePointer", [&]() -> cudaError_t {
        if (device_pointer == nullptr || flags != 0) {
            return cudaErrorInvalidValue;
        }
        const auto record = Runtime::get().heap.find_containing(number_of(pointer));
        if (!record || (record->origin != Origin::host && record->origin != Origin::registered)) {
            return cudaErrorInvalidValue;
        }
        *device_pointer = pointer;
        return cudaSuccess;
    });
}

cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer)
{
    return call("cudaHostGetFlags", [&]() -> cudaError_t {
        const auto record = Runtime::get().heap.find_containing(number_of(pointer));
        if (flags == nullptr || !record || record->origin != Origin::host) {
            return cudaErrorInvalidValue;
        }
        *flags = record->flags;
        return cudaSuccess;
    });
}

cudaError_t cudaMemGetInfo(size_t* free, size_t* total)
{
    return call("cudaMemGetInfo", [&]() -> cudaError_t {
        if (free == nullptr || total == nullptr) {
            return cudaErrorInvalidValue;
        }
        Runtime& runtime = Runtime::get();
        const Device& device = current_device();
        std::uint64_t used = runtime.memory.used(device.index);
        {
            const std::scoped_lock lock(runtime.mutex, runtime.heap.mutex());
            for (const Pool* pool : runtime.pools) {
                used += pool->device == device.index && pool->reserved > pool->used ? pool->reserved - pool->used : 0;
            }
        }
        *total = device.model->memory;
        *free = used < device.usable_memory() ? device.usable_memory() - used : 0;
        return cudaSuccess;
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer)
{
    return call("cudaPointerGetAttributes", [&]() -> cudaError_t {
        if (attributes == nullptr) {
            return cudaErrorInvalidValue;
        }
        *attributes = {};
        const Allocation* allocation = Runtime::get().memory.find(number_of(pointer));
        if (allocation == nullptr) {
            attributes->type = cudaMemoryTypeUnregistered;
            attributes->device = cudaInvalidDeviceId;
            attributes->hostPointer = const_cast<void*>(pointer);
            return cudaSuccess;
        }
        attributes->device = allocation->device;
        void* const address = const_cast<void*>(pointer);
        switch (allocation->kind) {
            case MemoryKind::pinned:
                attributes->type = cudaMemoryTypeHost;
                attributes->hostPointer = address;
                break;
            case MemoryKind::managed:
                attributes->type = cudaMemoryTypeManaged;
                attributes->hostPointer = address;
                break;
            default: attributes->type = cudaMemoryTypeDevice; break;
        }
        attributes->devicePointer = address;
        return cudaSuccess;
    });
}

// Hints about managed memory: the emulated devices and the host share it anyway.

cudaError_t cudaMemAdvise(const void* pointer, size_t count, cudaMemoryAdvise /*advice*/, cudaMemLocation /*location*/)
{
    return call("cudaMemAdvise", [&]() -> cudaError_t {
        return pointer == nullptr || count == 0 ? cudaErrorInvalidValue : cudaSuccess;
    });
}

cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t count, cudaMemLocation /*location*/, unsigned flags,
                                 cudaStream_t stream)
{
    return call("cudaMemPrefetchAsync", [&]() -> cudaError_t {
        if (find_stream(stream) == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        const auto record = Runtime::get().heap.find_containing(number_of(pointer));
        return !record || record->origin != Origin::managed || count == 0 || flags != 0 ? cudaErrorInvalidValue
                                                                                        : cudaSuccess;
    });
}

cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, size_t count, cudaMemLocation location, unsigned flags,
                                      cudaStream_t stream)
{
    return cudaMemPrefetchAsync(pointer, count, location, flags, per_thread(stream));
}

cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t /*length*/, unsigned /*flags*/)
{
    return call("cudaStreamAttachMemAsync", [&]() -> cudaError_t {
        if (find_stream(stream) == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        const auto record = Runtime::get().heap.find_containing(number_of(pointer));
        return !record || record->origin != Origin::managed ? cudaErrorInvalidValue : cudaSuccess;
    });
}

cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t stream, void* pointer, size_t length, unsigned flags)
{
    return cudaStreamAttachMemAsync(per_thread(stream), pointer, length, flags);
}

}  // extern "C"
