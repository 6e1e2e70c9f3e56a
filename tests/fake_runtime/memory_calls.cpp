/// The fake runtime's memory: allocations, copies and fills.

#include <cstring>

#include "runtime_state.hpp"

using namespace tessera::fake;

namespace {

/// Addresses of device memory: 16 TiB per device, which no Linux process maps. An address is never reused.
constexpr std::uintptr_t device_memory_base = std::uintptr_t{1} << 44U;
constexpr std::uintptr_t granularity = 512;

std::uintptr_t next_address(int device, std::size_t bytes)
{
    static std::map<int, std::uintptr_t> used;
    std::uintptr_t& offset = used[device];
    const std::uintptr_t address = device_memory_base * (static_cast<std::uintptr_t>(device) + 1) + offset;
    offset += (bytes + 2 * granularity - 1) / granularity * granularity;  // a gap after each
    return address;
}

cudaError_t allocate(void** pointer, std::size_t bytes, int device, MemoryKind kind, std::uint64_t capture)
{
    if (bytes > free_memory(device)) {
        return cudaErrorMemoryAllocation;
    }
    Allocation allocation;
    allocation.kind = kind;
    allocation.device = device;
    allocation.bytes = bytes;
    allocation.contents.reset(std::calloc(bytes, 1));
    allocation.address = kind == MemoryKind::pinned ? reinterpret_cast<std::uintptr_t>(allocation.contents.get())
                                                    : next_address(device, bytes);
    allocation.capture = capture;
    *pointer = reinterpret_cast<void*>(allocation.address);
    // The host allocator may reuse an address that was pinned before.
    runtime().memory.insert_or_assign(allocation.address, std::move(allocation));
    return cudaSuccess;
}

/// Returns the allocation that contains the address.
Allocation* find_memory(const void* pointer)
{
    auto& memory = runtime().memory;
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    auto after = memory.upper_bound(address);
    if (after == memory.begin()) {
        return nullptr;
    }
    Allocation& found = std::prev(after)->second;
    return address < found.address + found.bytes ? &found : nullptr;
}

/// Returns where the bytes really are; null, and records a misuse, if `pointer` has no such range. Host memory is used
/// directly.
void* translate(const void* pointer, std::size_t bytes, const char* call)
{
    const auto address = reinterpret_cast<std::uintptr_t>(pointer);
    Allocation* allocation = find_memory(pointer);
    if (allocation == nullptr || (!allocation->alive && allocation->kind == MemoryKind::pinned)) {
        if (address < device_memory_base || address >= 4 * device_memory_base) {
            return const_cast<void*>(pointer);
        }
        runtime().misuse(std::string(call) + " of device memory that was never allocated");
        return nullptr;
    }
    if (!allocation->alive) {
        runtime().misuse(std::string(call) + " of freed memory");
        return nullptr;
    }
    if (address + bytes > allocation->address + allocation->bytes) {
        runtime().misuse(std::string(call) + " beyond the end of an allocation");
        return nullptr;
    }
    return static_cast<std::byte*>(allocation->contents.get()) + (address - allocation->address);
}

void note_use(const void* pointer, const StreamRecord& stream)
{
    if (Allocation* allocation = find_memory(pointer); allocation != nullptr && stream.capture == 0) {
        allocation->uses.emplace_back(stream.id, stream.enqueued);
    }
}

/// Checks and performs a free, which comes after `clock`.
cudaError_t release(void* pointer, const char* call, MemoryKind kind, const Clock& clock)
{
    Runtime& state = runtime();
    Allocation* allocation = find_memory(pointer);
    if (allocation == nullptr || allocation->address != reinterpret_cast<std::uintptr_t>(pointer)) {
        state.misuse(std::string(call) + " of what was never allocated");
        return cudaErrorInvalidValue;
    }
    if (!allocation->alive) {
        state.misuse(std::string(call) + " of memory that was freed before");
        return cudaErrorInvalidValue;
    }
    if (allocation->kind != kind) {
        constexpr const char* origin[] = {"cudaMalloc", "cudaMallocAsync", "cudaHostAlloc"};
        state.misuse(std::string(call) + " of memory from " + origin[static_cast<int>(allocation->kind)]);
        return cudaErrorInvalidValue;
    }
    for (const auto& [stream, operation] : allocation->uses) {
        // Nothing runs any more in a lost context.
        if (state.sticky == cudaSuccess && !covers(state.completed, stream, operation) &&
            !covers(clock, stream, operation)) {
            state.misuse(std::string(call) + " of memory that a stream may still use");
            break;
        }
    }
    allocation->alive = false;
    if (kind != MemoryKind::pinned) {
        allocation->contents.reset();
    } else {
        // The address returns to the host allocator and may be reused for ordinary memory.
        const auto node = state.memory.extract(allocation->address);
    }
    return cudaSuccess;
}

}  // namespace

void* tessera::fake::contents_of(const void* device_memory)
{
    const std::scoped_lock lock(runtime_mutex());
    return translate(device_memory, 1, "contents_of");
}

int tessera::fake::pool_of(void* value, int attribute, unsigned long long address)
{
    constexpr int mempool_handle = 17;  // CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE
    const std::scoped_lock lock(runtime_mutex());
    static char pool = 0;
    const Allocation* allocation = find_memory(reinterpret_cast<const void*>(address));
    if (attribute != mempool_handle || allocation == nullptr || !allocation->alive) {
        return 1;  // CUDA_ERROR_INVALID_VALUE
    }
    *static_cast<void**>(value) = allocation->kind == MemoryKind::pool ? &pool : nullptr;
    return 0;
}

cudaError_t cudaMalloc(void** pointer, std::size_t bytes)
{
    return call("cudaMalloc", [&] {
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        return allocate(pointer, bytes, this_thread().device, MemoryKind::plain, 0);
    });
}

cudaError_t cudaFree(void* pointer)
{
    return call("cudaFree", OnFault::perform, [&] {
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        return pointer == nullptr ? cudaSuccess : release(pointer, "cudaFree", MemoryKind::plain, {});
    });
}

cudaError_t cudaMallocAsync(void** pointer, std::size_t bytes, cudaStream_t stream)
{
    return call("cudaMallocAsync", [&] {
        StreamRecord* record = find_stream(stream, "cudaMallocAsync");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (record->device == t4) {
            return cudaErrorNotSupported;
        }
        enqueue(*record);
        return allocate(pointer, bytes, record->device, MemoryKind::pool, record->capture);
    });
}

cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream)
{
    return call("cudaFreeAsync", OnFault::perform, [&] {
        StreamRecord* record = find_stream(stream, "cudaFreeAsync");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (record->capture != 0) {
            // A node of a graph can free only memory of the same graph.
            const Allocation* allocation = find_memory(pointer);
            if (allocation == nullptr || allocation->capture != record->capture) {
                return cudaErrorInvalidValue;
            }
        }
        enqueue(*record);
        return release(pointer, "cudaFreeAsync", MemoryKind::pool, record->clock);
    });
}

cudaError_t cudaHostAlloc(void** pointer, std::size_t bytes, unsigned /*flags*/)
{
    return call("cudaHostAlloc", [&] {
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        return allocate(pointer, bytes, this_thread().device, MemoryKind::pinned, 0);
    });
}

cudaError_t cudaFreeHost(void* pointer)
{
    return call("cudaFreeHost", OnFault::perform, [&] {
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        return release(pointer, "cudaFreeHost", MemoryKind::pinned, {});
    });
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer)
{
    return call("cudaPointerGetAttributes", [&] {
        *attributes = {};
        attributes->type = cudaMemoryTypeUnregistered;
        attributes->device = -2;
        if (const Allocation* allocation = find_memory(pointer); allocation != nullptr && allocation->alive) {
            const bool pinned = allocation->kind == MemoryKind::pinned;
            attributes->type = pinned ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
            attributes->device = allocation->device;
            attributes->devicePointer = const_cast<void*>(pointer);
            attributes->hostPointer = pinned ? const_cast<void*>(pointer) : nullptr;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes, cudaMemcpyKind /*kind*/,
                            cudaStream_t stream)
{
    return call("cudaMemcpyAsync", [&] {
        StreamRecord* record = find_stream(stream, "cudaMemcpyAsync");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        void* const to = translate(target, bytes, "cudaMemcpyAsync");
        const void* const from = translate(source, bytes, "cudaMemcpyAsync");
        if (to == nullptr || from == nullptr) {
            return cudaErrorInvalidValue;
        }
        enqueue(*record);
        note_use(target, *record);
        note_use(source, *record);
        if (record->capture == 0) {
            std::memmove(to, from, bytes);
        }
        return cudaSuccess;
    });
}

cudaError_t cudaMemcpy2DAsync(void* target, std::size_t target_pitch, const void* source, std::size_t source_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind /*kind*/, cudaStream_t stream)
{
    return call("cudaMemcpy2DAsync", [&] {
        StreamRecord* record = find_stream(stream, "cudaMemcpy2DAsync");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (width > target_pitch || width > source_pitch) {
            return cudaErrorInvalidPitchValue;
        }
        if (width == 0 || height == 0) {
            return cudaSuccess;
        }
        auto* const to =
            static_cast<std::byte*>(translate(target, (height - 1) * target_pitch + width, "cudaMemcpy2DAsync"));
        const auto* const from =
            static_cast<const std::byte*>(translate(source, (height - 1) * source_pitch + width, "cudaMemcpy2DAsync"));
        if (to == nullptr || from == nullptr) {
            return cudaErrorInvalidValue;
        }
        enqueue(*record);
        note_use(target, *record);
        note_use(source, *record);
        if (record->capture == 0) {
            for (std::size_t row = 0; row < height; ++row) {
                std::memmove(to + row * target_pitch, from + row * source_pitch, width);
            }
        }
        return cudaSuccess;
    });
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream)
{
    return call("cudaMemsetAsync", [&] {
        StreamRecord* record = find_stream(stream, "cudaMemsetAsync");
        if (record == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        void* const to = translate(target, bytes, "cudaMemsetAsync");
        if (to == nullptr) {
            return cudaErrorInvalidValue;
        }
        enqueue(*record);
        note_use(target, *record);
        if (record->capture == 0) {
            std::memset(to, value, bytes);
        }
        return cudaSuccess;
    });
}
