#pragma once

/// @file
/// @ingroup host_memory
/// @brief `PinnedBuffer<T>`: owns page-locked host memory, which the device copies from and to asynchronously.

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/detail/element_count.hpp"
#include "tessera/detail/refused.hpp"
#include "tessera/event.hpp"
#include "tessera/host_span.hpp"
#include "tessera/stream.hpp"

namespace tessera {

template <class T>
class DeviceBuffer;

namespace detail {

/// What the device does with pinned memory, which decides what the host must not do until it is done.
enum class PinnedUse : std::uint8_t {
    reads = 1,   ///< the host must not write
    writes = 2,  ///< the host must not read either
};

/// The untyped owner inside of PinnedBuffer.
class PinnedMemory {
public:
    PinnedMemory() = default;
    PinnedMemory(ElementCount count, std::size_t element_bytes, const std::source_location& caller);
    PinnedMemory(PinnedMemory&& other) noexcept { take(other); }
    PinnedMemory& operator=(PinnedMemory&& other) noexcept
    {
        if (this != &other) {
            free();
            take(other);
        }
        return *this;
    }
    PinnedMemory(const PinnedMemory&) = delete;
    PinnedMemory& operator=(const PinnedMemory&) = delete;
    ~PinnedMemory() { free(); }

    void* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    /// @throws Error `empty_handle` if there never was memory, or it was moved away
    void require(std::string_view operation, const std::source_location& caller) const
    {
        if (!is_given_) [[unlikely]] {
            raise_empty(operation, caller);
        }
    }
    void used_on(StreamRef stream, PinnedUse use, std::string_view operation, const std::source_location& caller);
    void synchronize(std::string_view operation, const std::source_location& caller) const;

    /// Before the host reads: waits for the device's writes. Costs one load if nothing is pending.
    void before_read(std::string_view operation, const std::source_location& caller) const
    {
        if ((pending() & static_cast<unsigned>(PinnedUse::writes)) != 0) [[unlikely]] {
            synchronize(operation, caller);
        }
    }
    /// Before the host writes: waits for everything.
    void before_write(std::string_view operation, const std::source_location& caller) const
    {
        if (pending() != 0) [[unlikely]] {
            synchronize(operation, caller);
        }
    }

    static PinnedMemory adopt(void* data, ElementCount count, std::size_t element_bytes,
                              const std::source_location& caller);
    void* release(const std::source_location& caller);

private:
    /// The last use on one stream; a later use on it covers the earlier ones.
    struct Use {
        StreamRef stream;
        Event done;
    };

    [[noreturn]] void raise_empty(std::string_view operation, const std::source_location& caller) const;
    void remember(StreamRef stream, std::string_view operation, const std::source_location& caller);
    void take(PinnedMemory& other) noexcept
    {
        data_ = std::exchange(other.data_, nullptr);
        size_ = std::exchange(other.size_, 0);
        is_given_ = std::exchange(other.is_given_, false);
        uses_ = std::move(other.uses_);
        other.uses_.clear();
        pending_ = std::exchange(other.pending_, 0U);  // no other thread may use either meanwhile
    }
    void free() noexcept;
    /// A builtin: <atomic> would be an eighth of the SDK's compile time.
    unsigned pending() const noexcept { return __atomic_load_n(&pending_, __ATOMIC_ACQUIRE); }

    void* data_ = nullptr;
    std::size_t size_ = 0;  // in elements
    bool is_given_ = false;
    std::vector<Use> uses_;
    /// PinnedUse of the `uses_` that nothing has waited for. Atomic, because const functions, which may run at the same
    /// time, clear it.
    mutable unsigned pending_ = 0;
};

}  // namespace detail

/// Owns page-locked host elements. Move-only.
///
/// @code{.cpp}
/// PinnedBuffer<float> staging(m * n);
/// d.copy_to_async(stream, staging);
/// float first = staging[0];  // waits for the copy
/// @endcode
///
/// @par Synchronization
/// The buffer remembers the copies from and to it. Its destructor waits for them before it frees the memory. Element
/// access (`[]`, `at`, `span`, `begin`) waits for the copies that it would race with: a read sees what the copy
/// brought, and what a copy still reads is not overwritten. Access costs a check of one flag, and it waits only where
/// the program would be wrong without. Reading through a const buffer (`std::as_const`) waits only for copies to the
/// buffer.
///
/// @par What does not wait
/// `data()`, and spans and iterators that were obtained before a copy was enqueued: call `synchronize()`. Copies inside
/// of a captured graph are not remembered: wait for the stream on which the graph is launched, and keep the buffer
/// alive as long as the graph.
///
/// @par Empty buffers
/// A default-constructed, moved-from or released buffer has size 0; what needs its memory throws `empty_handle`.
///
/// @par Thread safety
/// As for a container of the standard library. Const functions may be called on one buffer at the same time; all
/// others, copies from and to it among them, by one thread at a time. Threads that share elements must order their
/// accesses.
///
/// @tparam T  a trivially copyable type, not const
template <class T>
class PinnedBuffer {
    static_assert(std::is_trivially_copyable_v<T>,
                  "tessera: PinnedBuffer<T> is copied as bytes by the device, so T must be trivially copyable");
    static_assert(!std::is_const_v<T>,
                  "tessera: PinnedBuffer<T> owns writable memory: write PinnedBuffer<T>, not <const T>");

public:
    /// The element type.
    using value_type = T;

    /// An empty buffer: no memory, size 0.
    PinnedBuffer() = default;

    /// Allocates `size` elements, all bytes zero. Blocks: page-locking is slow, so allocate once and reuse.
    /// @param size    number of elements, of any integer type; may be 0
    /// @throws Error  `invalid_argument` for a negative size, `size_overflow`, `out_of_memory`, `capture_violation`
    explicit PinnedBuffer(detail::ElementCount size, std::source_location caller = std::source_location::current())
        : memory_(size, sizeof(T), caller)
    {}

    /// Takes over `size` elements that cudaMallocHost or cudaHostAlloc returned.
    /// @throws Error  `wrong_memory` if they are not page-locked, `invalid_argument` and `size_overflow` for the size
    static PinnedBuffer adopt(T* data, detail::ElementCount size,
                              std::source_location caller = std::source_location::current())
    {
        PinnedBuffer buffer;
        buffer.memory_ = detail::PinnedMemory::adopt(data, size, sizeof(T), caller);
        return buffer;
    }

    /// Waits for pending copies, then gives the memory away; the caller frees it with cudaFreeHost. The buffer is empty
    /// afterwards.
    /// @return the first element, or null if the buffer was empty
    [[nodiscard]] T* release(std::source_location caller = std::source_location::current()) &&
    {
        return static_cast<T*>(memory_.release(caller));
    }

    /// Moves the memory; `other` is empty afterwards.
    PinnedBuffer(PinnedBuffer&&) noexcept = default;
    /// Frees this buffer's memory when its copies are done, then moves; `other` is empty afterwards.
    PinnedBuffer& operator=(PinnedBuffer&&) noexcept = default;
    PinnedBuffer(const PinnedBuffer&) = delete;  // would hide an allocation and a copy
    PinnedBuffer& operator=(const PinnedBuffer&) = delete;
    /// Waits for the copies from and to the buffer, then frees the memory.
    ~PinnedBuffer() = default;

    /// Returns the address of the first element, or null. Does not wait for pending copies.
    T* data() noexcept { return static_cast<T*>(memory_.data()); }
    /// Returns the address of the first element, for reading. Does not wait for pending copies.
    const T* data() const noexcept { return static_cast<const T*>(memory_.data()); }
    /// Returns the number of elements.
    std::size_t size() const noexcept { return memory_.size(); }
    /// Returns the size in bytes.
    std::size_t size_bytes() const noexcept { return size() * sizeof(T); }
    /// Returns true if there are no elements.
    bool empty() const noexcept { return size() == 0; }

    /// Returns element `index`. Waits for the copies that the access would race with.
    /// @throws Error  `out_of_range`, `empty_handle` if the buffer was moved from
    T& operator[](detail::ElementIndex index) { return element("PinnedBuffer::operator[]", index, index.caller()); }
    /// Returns element `index`, for reading. Waits for copies to the buffer.
    /// @throws Error  `out_of_range`, `empty_handle` if the buffer was moved from
    const T& operator[](detail::ElementIndex index) const
    {
        return element("PinnedBuffer::operator[]", index, index.caller());
    }
    /// Returns element `index`, as `[]` does.
    /// @throws Error  `out_of_range`, `empty_handle` if the buffer was moved from
    T& at(detail::ElementCount index, std::source_location caller = std::source_location::current())
    {
        return element("PinnedBuffer::at", index, caller);
    }
    /// Returns element `index`, for reading, as `[]` does.
    /// @throws Error  `out_of_range`, `empty_handle` if the buffer was moved from
    const T& at(detail::ElementCount index, std::source_location caller = std::source_location::current()) const
    {
        return element("PinnedBuffer::at", index, caller);
    }

    /// Returns all elements, with checked access. Waits for the copies that access to them would race with; the span
    /// does not wait for later copies. It must not outlive the buffer. Empty for a buffer that was moved from.
    HostSpan<T> span(std::source_location caller = std::source_location::current()) &
    {
        memory_.before_write("PinnedBuffer::span", caller);
        return {data(), size()};
    }
    /// Returns all elements, for reading. Waits for copies to the buffer.
    HostSpan<const T> span(std::source_location caller = std::source_location::current()) const&
    {
        memory_.before_read("PinnedBuffer::span", caller);
        return {data(), size()};
    }
    /// Refuses to compile for a temporary buffer.
    template <class Element = T>
    auto span() const&&
    {
        static_assert(detail::always_false<Element>,
                      "tessera: span() of a temporary PinnedBuffer: its memory would be gone before the span is used. "
                      "Give the buffer a name");
        return HostSpan<Element>();
    }

    /// Returns an iterator to the first element. Waits as span() does.
    T* begin() { return span().begin(); }
    /// Returns an iterator past the last element.
    T* end() noexcept { return data() + size(); }
    /// Returns an iterator to the first element, for reading. Waits as span() does.
    const T* begin() const { return span().begin(); }
    /// Returns an iterator past the last element, for reading.
    const T* end() const noexcept { return data() + size(); }

    /// Blocks until every copy from or to this buffer that was enqueued so far is done.
    /// @throws Error  `empty_handle` if the buffer was moved from, `context_lost` if a copy failed
    void synchronize(std::source_location caller = std::source_location::current()) const
    {
        memory_.require("PinnedBuffer::synchronize", caller);
        memory_.synchronize("PinnedBuffer::synchronize", caller);
    }

    /// Remembers a use that the SDK does not know of, such as a raw cudaMemcpyAsync. The memory stays until everything
    /// enqueued on `stream` so far is done, and element access waits for it. PyTorch's name for this is record_stream.
    /// @throws Error  `empty_handle` if the buffer was moved from
    void used_on(StreamRef stream, std::source_location caller = std::source_location::current())
    {
        memory_.require("PinnedBuffer::used_on", caller);
        memory_.used_on(stream, detail::PinnedUse::writes, "PinnedBuffer::used_on", caller);
    }

private:
    friend class DeviceBuffer<T>;

    T& element(std::string_view operation, detail::ElementCount index, const std::source_location& caller)
    {
        require_index(operation, index, caller);
        memory_.before_write(operation, caller);
        return data()[index.wrapped()];
    }
    const T& element(std::string_view operation, detail::ElementCount index, const std::source_location& caller) const
    {
        require_index(operation, index, caller);
        memory_.before_read(operation, caller);
        return data()[index.wrapped()];
    }
    void require_index(std::string_view operation, detail::ElementCount index, const std::source_location& caller) const
    {
        if (index.wrapped() >= size()) [[unlikely]] {
            memory_.require(operation, caller);
            detail::raise_index(operation, index, size(), caller);
        }
    }

    detail::PinnedMemory memory_;
};

}  // namespace tessera
