#pragma once

/// `PinnedBuffer<T>`: owns page-locked host memory, which the device copies from and to asynchronously.

#include <cstddef>
#include <gsl/span>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/event.hpp"
#include "tessera/stream.hpp"

namespace tessera {

namespace detail {

/// The untyped owner behind PinnedBuffer.
class PinnedMemory {
public:
    PinnedMemory() = default;
    PinnedMemory(std::size_t count, std::size_t element_bytes, const std::source_location& caller);
    PinnedMemory(PinnedMemory&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)),
          size_(std::exchange(other.size_, 0)),
          uses_(std::move(other.uses_))
    {
        other.uses_.clear();
    }
    PinnedMemory& operator=(PinnedMemory&& other) noexcept
    {
        if (this != &other) {
            free();
            data_ = std::exchange(other.data_, nullptr);
            size_ = std::exchange(other.size_, 0);
            uses_ = std::move(other.uses_);
            other.uses_.clear();
        }
        return *this;
    }
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    ~PinnedMemory() { free(); }

    void* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    void used_on(StreamRef stream, const std::source_location& caller);
    void synchronize(const std::source_location& caller) const;
    static PinnedMemory adopt(void* data, std::size_t count, const std::source_location& caller);
    void* release(const std::source_location& caller);

private:
    /// The last use on one stream; a later use on it covers the earlier ones.
    struct Use {
        StreamRef stream;
        Event done;
    };

    void remember(StreamRef stream, const std::source_location& caller);
    void free() noexcept;

    void* data_ = nullptr;
    std::size_t size_ = 0;  // in elements
    std::vector<Use> uses_;
};

}  // namespace detail

/// Owns page-locked host elements. Move-only. Readable and writable on the host at any time, and by copies of any
/// device.
///
/// The buffer remembers the streams that copies from or to it were enqueued on, and its destructor waits for those
/// copies before it gives the memory back. Copies inside of a captured graph are not remembered: the buffer must
/// outlive the graph.
template <class T>
class PinnedBuffer {
    static_assert(std::is_trivially_copyable_v<T>,
                  "tessera: PinnedBuffer<T> is copied as bytes by the device, so T must be trivially copyable");
    static_assert(!std::is_const_v<T>,
                  "tessera: PinnedBuffer<T> owns writable memory: write PinnedBuffer<T>, not <const T>");

public:
    /// The element type.
    using value_type = T;

    /// Empty.
    PinnedBuffer() = default;

    /// Allocates `size` elements, all bytes zero. Blocks: page-locking is slow, so allocate once and reuse.
    /// @throws Error `size_overflow`, `out_of_memory`, `capture_violation`
    explicit PinnedBuffer(std::size_t size, std::source_location caller = std::source_location::current())
        : memory_(size, sizeof(T), caller)
    {}

    /// Takes over `size` elements that cudaMallocHost or cudaHostAlloc returned.
    /// @throws Error `wrong_memory` if they are not page-locked
    static PinnedBuffer adopt(T* data, std::size_t size, std::source_location caller = std::source_location::current())
    {
        PinnedBuffer buffer;
        buffer.memory_ = detail::PinnedMemory::adopt(data, size, caller);
        return buffer;
    }

    /// Waits for pending copies, then gives the memory away; the caller frees it with cudaFreeHost.
    [[nodiscard]] T* release(std::source_location caller = std::source_location::current()) &&
    {
        return static_cast<T*>(memory_.release(caller));
    }

    /// The other one is empty afterwards.
    PinnedBuffer(PinnedBuffer&&) noexcept = default;
    /// The other one is empty afterwards.
    PinnedBuffer& operator=(PinnedBuffer&&) noexcept = default;
    PinnedBuffer(const PinnedBuffer&) = delete;  // would hide an allocation and a copy
    PinnedBuffer& operator=(const PinnedBuffer&) = delete;
    ~PinnedBuffer() = default;

    /// The address of the first element, or null.
    T* data() noexcept { return static_cast<T*>(memory_.data()); }
    /// The same, for reading.
    const T* data() const noexcept { return static_cast<const T*>(memory_.data()); }
    /// In elements.
    std::size_t size() const noexcept { return memory_.size(); }
    /// In bytes.
    std::size_t size_bytes() const noexcept { return size() * sizeof(T); }
    /// True if there are no elements.
    bool empty() const noexcept { return size() == 0; }

    /// The elements, bounds-checked by gsl::span. After a copy to here was enqueued, call synchronize() before reading.
    gsl::span<T> span() & noexcept { return {data(), size()}; }
    /// The same, for reading.
    gsl::span<const T> span() const& noexcept { return {data(), size()}; }
    void span() && = delete;

    /// The first element, for range-based loops. As with span(), not checked against pending copies.
    T* begin() noexcept { return data(); }
    /// One past the last element.
    T* end() noexcept { return data() + size(); }
    /// The first element, for reading.
    const T* begin() const noexcept { return data(); }
    /// One past the last element, for reading.
    const T* end() const noexcept { return data() + size(); }

    /// Blocks until every copy from or to this buffer that was enqueued so far is done.
    void synchronize(std::source_location caller = std::source_location::current()) const
    {
        memory_.synchronize(caller);
    }

    /// Remembers a use that the SDK does not know of (a raw cudaMemcpyAsync): the memory stays until everything
    /// enqueued on `stream` so far is done.
    void used_on(StreamRef stream, std::source_location caller = std::source_location::current())
    {
        memory_.used_on(stream, caller);
    }

private:
    detail::PinnedMemory memory_;
};

}  // namespace tessera
