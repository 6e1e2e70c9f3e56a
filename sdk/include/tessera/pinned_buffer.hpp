#pragma once

/// `PinnedBuffer<T>`: owns page-locked host memory, which the device copies from and to asynchronously.

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

/// What the device does with pinned memory, and so what the host must not do before it is done.
enum class PinnedUse : std::uint8_t {
    reads = 1,   ///< the host must not write
    writes = 2,  ///< the host must not read either
};

/// The untyped owner behind PinnedBuffer.
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

    /// Before the host reads: waits for what the device writes. One load if nothing is pending.
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
        pending_ = std::exchange(other.pending_, 0U);  // nobody else may use either meanwhile
    }
    void free() noexcept;
    /// A builtin, since <atomic> would make an eighth of the time that the SDK's headers take to compile.
    unsigned pending() const noexcept { return __atomic_load_n(&pending_, __ATOMIC_ACQUIRE); }

    void* data_ = nullptr;
    std::size_t size_ = 0;  // in elements
    bool is_given_ = false;
    std::vector<Use> uses_;
    /// PinnedUse of those `uses_` whose end nobody has waited for. Atomic, since const functions, which may run at the
    /// same time, clear it.
    mutable unsigned pending_ = 0;
};

}  // namespace detail

/// Owns page-locked host elements. Move-only.
///
/// The buffer remembers the copies from and to it. Its destructor waits for them before it gives the memory back, and
/// element access (`[]`, `at`, `span`, `begin`) waits for those that it would race with: what is read is what the copy
/// brought, and what a copy still reads is not overwritten. It costs a look at one flag, and a wait only where the
/// program would have been wrong without one. Reading through a const buffer (`std::as_const`) waits for copies to it
/// only. `data()` and what was obtained before a copy was enqueued (a span, an iterator) do not wait: call
/// `synchronize()`. Neither does anything for the copies inside of a captured graph, which are not remembered: wait for
/// the stream that the graph is launched on, and keep the buffer alive as long as the graph.
///
/// A buffer that was moved from has size 0 and no elements; what needs its memory throws `empty_handle`.
///
/// Thread safety: as a container of the standard library's. Const functions may be called at the same time, on one
/// buffer; all others, copies from and to it among them, by one thread at a time. Elements are the caller's to guard.
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

    /// Allocates `size` elements (any integer type), all bytes zero. Blocks: page-locking is slow, so allocate once and
    /// reuse.
    /// @throws Error `invalid_argument` for a negative size, `size_overflow`, `out_of_memory`, `capture_violation`
    explicit PinnedBuffer(detail::ElementCount size, std::source_location caller = std::source_location::current())
        : memory_(size, sizeof(T), caller)
    {}

    /// Takes over `size` elements that cudaMallocHost or cudaHostAlloc returned.
    /// @throws Error `wrong_memory` if they are not page-locked, `invalid_argument` and `size_overflow` for the size
    static PinnedBuffer adopt(T* data, detail::ElementCount size,
                              std::source_location caller = std::source_location::current())
    {
        PinnedBuffer buffer;
        buffer.memory_ = detail::PinnedMemory::adopt(data, size, sizeof(T), caller);
        return buffer;
    }

    /// Waits for pending copies, then gives the memory away; the caller frees it with cudaFreeHost. Null if the buffer
    /// was empty.
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

    /// The address of the first element, or null. Does not wait for pending copies.
    T* data() noexcept { return static_cast<T*>(memory_.data()); }
    /// The same, for reading.
    const T* data() const noexcept { return static_cast<const T*>(memory_.data()); }
    /// In elements.
    std::size_t size() const noexcept { return memory_.size(); }
    /// In bytes.
    std::size_t size_bytes() const noexcept { return size() * sizeof(T); }
    /// True if there are no elements.
    bool empty() const noexcept { return size() == 0; }

    /// One element. Waits for the copies that it would race with.
    /// @throws Error `out_of_range`, `empty_handle` if the buffer was moved from
    T& operator[](detail::ElementIndex index) { return element("PinnedBuffer::operator[]", index, index.caller()); }
    /// The same, for reading.
    const T& operator[](detail::ElementIndex index) const
    {
        return element("PinnedBuffer::operator[]", index, index.caller());
    }
    /// The same by name.
    T& at(detail::ElementCount index, std::source_location caller = std::source_location::current())
    {
        return element("PinnedBuffer::at", index, caller);
    }
    /// The same, for reading.
    const T& at(detail::ElementCount index, std::source_location caller = std::source_location::current()) const
    {
        return element("PinnedBuffer::at", index, caller);
    }

    /// All elements, bounds-checked. Waits for the copies that access to them would race with; later copies are not the
    /// span's to see. It must not outlive the buffer. Empty for a buffer that was moved from.
    HostSpan<T> span(std::source_location caller = std::source_location::current()) &
    {
        memory_.before_write("PinnedBuffer::span", caller);
        return {data(), size()};
    }
    /// The same, for reading.
    HostSpan<const T> span(std::source_location caller = std::source_location::current()) const&
    {
        memory_.before_read("PinnedBuffer::span", caller);
        return {data(), size()};
    }
    /// Refused.
    template <class Element = T>
    auto span() const&&
    {
        static_assert(detail::always_false<Element>,
                      "tessera: span() of a temporary PinnedBuffer: its memory would be gone before the span is used. "
                      "Give the buffer a name");
        return HostSpan<Element>();
    }

    /// The first element, for range-based loops. Waits as span() does.
    T* begin() { return span().begin(); }
    /// One past the last element.
    T* end() noexcept { return data() + size(); }
    /// The first element, for reading.
    const T* begin() const { return span().begin(); }
    /// One past the last element, for reading.
    const T* end() const noexcept { return data() + size(); }

    /// Blocks until every copy from or to this buffer that was enqueued so far is done.
    /// @throws Error `empty_handle` if the buffer was moved from, `context_lost` if a copy failed
    void synchronize(std::source_location caller = std::source_location::current()) const
    {
        memory_.require("PinnedBuffer::synchronize", caller);
        memory_.synchronize("PinnedBuffer::synchronize", caller);
    }

    /// Remembers a use that the SDK does not know of (a raw cudaMemcpyAsync): the memory stays until everything
    /// enqueued on `stream` so far is done, and element access waits for it. PyTorch calls it record_stream.
    /// @throws Error `empty_handle` if the buffer was moved from
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
