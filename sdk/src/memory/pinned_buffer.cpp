#include "tessera/pinned_buffer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "memory/memory_size.hpp"

namespace tessera::detail {

PinnedMemory::PinnedMemory(ElementCount count, std::size_t element_bytes, const std::source_location& caller)
    : size_(count.require("PinnedBuffer", caller)), is_given_(true)
{
    const std::size_t bytes = require_byte_count("PinnedBuffer", size_, element_bytes, caller);
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

PinnedMemory PinnedMemory::adopt(void* data, ElementCount count, std::size_t element_bytes,
                                 const std::source_location& caller)
{
    constexpr std::string_view operation = "PinnedBuffer::adopt";
    PinnedMemory memory;
    memory.size_ = count.require(operation, caller);
    static_cast<void>(require_byte_count(operation, memory.size_, element_bytes, caller));
    if (memory.size_ != 0) {
        cudaPointerAttributes attributes{};
        check(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes", operation, caller);
        if (attributes.type != cudaMemoryTypeHost) {
            raise(ErrorCode::wrong_memory, operation, caller,
                  fmt::format("{} is not page-locked host memory", fmt::ptr(data)),
                  "memory from cudaMallocHost or cudaHostAlloc");
        }
    }
    memory.data_ = data;
    memory.is_given_ = true;
    return memory;
}

void PinnedMemory::raise_empty(std::string_view operation, const std::source_location& caller) const
{
    raise(ErrorCode::empty_handle, operation, caller,
          "the pinned buffer was moved from, released or never given memory", "use the object that it was moved to");
}

void* PinnedMemory::release(const std::source_location& caller)
{
    synchronize("PinnedBuffer::release", caller);
    uses_.clear();
    size_ = 0;
    is_given_ = false;
    return std::exchange(data_, nullptr);
}

void PinnedMemory::used_on(StreamRef stream, PinnedUse use, std::string_view operation,
                           const std::source_location& caller)
{
    if (stream.is_capturing()) {
        return;  // a captured event never happens; as documented, the graph's owner keeps the buffer
    }
    try {
        remember(stream, operation, caller);
    } catch (...) {
        // Without a record of it, the work would outlive the memory. Wait for it here.
        try {
            synchronize_stream(stream, operation, caller);
        } catch (const Error& error) {
            drop(error.cuda_status(), "cudaStreamSynchronize");
        }
        throw;
    }
    pending_ |= static_cast<unsigned>(use);  // not const: only the calling thread uses the buffer
}

void PinnedMemory::remember(StreamRef stream, std::string_view operation, const std::source_location& caller)
{
    auto use = std::find_if(uses_.begin(), uses_.end(), [&](const Use& known) { return known.stream == stream; });
    if (use == uses_.end()) {
        // Drop finished uses; otherwise a buffer that many streams share would keep growing.
        std::erase_if(uses_, [&](const Use& known) { return is_event_done(known.done.get(), operation, caller); });
        uses_.push_back({stream, Event(stream.device(), EventKind::ordering, operation, caller)});
        use = uses_.end() - 1;
    }
    record_event(use->done.get(), stream, operation, caller);
}

void PinnedMemory::synchronize(std::string_view operation, const std::source_location& caller) const
{
    for (const Use& use : uses_) {
        check(cudaEventSynchronize(use.done.get()), "cudaEventSynchronize", operation, caller);
    }
    __atomic_store_n(&pending_, 0U, __ATOMIC_RELEASE);
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
