#include "tessera/pinned_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "memory_size.hpp"

namespace tessera::detail {

PinnedMemory::PinnedMemory(std::size_t count, std::size_t element_bytes, const std::source_location& caller)
    : size_(count)
{
    const std::size_t bytes = require_byte_count("PinnedBuffer", count, element_bytes, caller);
    if (bytes == 0) {
        return;
    }
    // Portable: page-locked for every device, not only for the current one.
    const cudaError_t status = cudaHostAlloc(&data_, bytes, cudaHostAllocPortable);
    if (status != cudaSuccess) {
        data_ = nullptr;
        raise_cuda(status, "cudaHostAlloc", "PinnedBuffer", caller,
                   fmt::format("while allocating {} pinned bytes", bytes));
    }
    std::memset(data_, 0, bytes);
}

PinnedMemory PinnedMemory::adopt(void* data, std::size_t count, const std::source_location& caller)
{
    PinnedMemory memory;
    if (count != 0) {
        cudaPointerAttributes attributes{};
        check(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes", "PinnedBuffer::adopt", caller);
        if (attributes.type != cudaMemoryTypeHost) {
            raise(ErrorCode::wrong_memory, "PinnedBuffer::adopt", caller,
                  fmt::format("{} is not page-locked host memory", fmt::ptr(data)),
                  "memory from cudaMallocHost or cudaHostAlloc");
        }
    }
    memory.data_ = data;
    memory.size_ = count;
    return memory;
}

void* PinnedMemory::release(const std::source_location& caller)
{
    synchronize(caller);
    uses_.clear();
    size_ = 0;
    return std::exchange(data_, nullptr);
}

void PinnedMemory::used_on(StreamRef stream, const std::source_location& caller)
{
    if (stream.is_capturing()) {
        return;  // a captured event never happens; the graph's owner keeps the buffer, as documented
    }
    try {
        remember(stream, caller);
    } catch (...) {
        // Unremembered, the work would outlive the memory: wait for it here.
        try {
            stream.synchronize(caller);
        } catch (const Error& error) {
            drop(error.cuda_status(), "cudaStreamSynchronize");
        }
        throw;
    }
}

void PinnedMemory::remember(StreamRef stream, const std::source_location& caller)
{
    auto use = std::find_if(uses_.begin(), uses_.end(), [&](const Use& known) { return known.stream == stream; });
    if (use == uses_.end()) {
        // Uses that are over need no memory any more; without this a buffer that many streams share would only grow.
        std::erase_if(uses_, [&](const Use& known) { return known.done.done(caller); });
        uses_.push_back({stream, Event(Device(stream.device(), caller), EventKind::ordering, caller)});
        use = uses_.end() - 1;
    }
    use->done.record(stream, caller);
}

void PinnedMemory::synchronize(const std::source_location& caller) const
{
    for (const Use& use : uses_) {
        use.done.synchronize(caller);
    }
}

void PinnedMemory::free() noexcept
{
    for (const Use& use : uses_) {
        drop(cudaEventSynchronize(use.done.get()), "cudaEventSynchronize");
    }
    uses_.clear();
    if (data_ != nullptr) {
        drop(cudaFreeHost(data_), "cudaFreeHost");
    }
    data_ = nullptr;
}

}  // namespace tessera::detail
