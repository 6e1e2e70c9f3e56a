#pragma once

/// `DeviceBuffer<T>`: owns an array in device memory.
///
/// Allocation and free are ordered on the buffer's *home stream*: memory is usable by later work of that stream at
/// once, and is given back after the work that was enqueued there before the buffer died, without anybody waiting.
/// Another stream that uses the buffer must be ordered with the home stream: `stream.wait(home)` before its first use,
/// and `buffer.used_on(stream)` after its last, before the buffer dies. The home stream itself is kept alive by the
/// buffer.

#include <cstddef>
#include <cstdint>
#include <gsl/span>
#include <source_location>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/device_span.hpp"
#include "tessera/pinned_buffer.hpp"
#include "tessera/stream.hpp"

namespace tessera {

/// How device memory is obtained.
enum class Allocation : std::uint8_t {
    automatic,  ///< `pool` where the device has memory pools, else `plain`
    pool,       ///< cudaMallocAsync from the device's current pool; stream-ordered
    plain,      ///< cudaMalloc; the free waits for the home stream first
};

/// Device memory outside of any owner: what `DeviceBuffer::release` gives and `adopt` takes.
template <class T>
struct RawAllocation {
    T* data;                ///< what cudaMallocAsync or cudaMalloc returned
    std::size_t size;       ///< in elements
    Allocation allocation;  ///< `pool`: free with cudaFreeAsync; `plain`: with cudaFree
};

namespace detail {

/// The untyped owner behind DeviceBuffer: all that does not depend on the element type.
class DeviceMemory {
public:
    DeviceMemory() = default;
    DeviceMemory(StreamRef stream, std::size_t count, std::size_t element_bytes, Allocation allocation,
                 const std::source_location& caller);
    static DeviceMemory adopt(StreamRef stream, void* data, std::size_t count, std::size_t element_bytes,
                              Allocation allocation, const std::source_location& caller);
    DeviceMemory(DeviceMemory&& other) noexcept { swap(other); }
    DeviceMemory& operator=(DeviceMemory&& other) noexcept
    {
        if (this != &other) {
            DeviceMemory old(std::move(*this));
            swap(other);
        }
        return *this;
    }
    DeviceMemory(const DeviceMemory&) = delete;
    DeviceMemory& operator=(const DeviceMemory&) = delete;
    ~DeviceMemory();

    void* data() const noexcept { return data_; }
    std::size_t size() const noexcept { return size_; }
    int device() const noexcept { return device_; }
    Allocation allocation() const noexcept { return allocation_; }
    StreamRef home(std::string_view operation, const std::source_location& caller) const;
    void* release() noexcept;

private:
    void swap(DeviceMemory& other) noexcept;
    void free() noexcept;
    bool defer() const noexcept;

    void* data_ = nullptr;
    std::size_t size_ = 0;  // in elements
    cudaStream_t stream_ = nullptr;
    StreamState* state_ = nullptr;
    int device_ = -1;
    Allocation allocation_ = Allocation::automatic;
    bool allocated_in_capture_ = false;  // then it is the graph's memory, and its free belongs into the capture
};

/// One end of a copy, for checks and for messages.
struct CopyEnd {
    const char* name;  // "the buffer", "the host span"
    const void* data;
    std::size_t size;    // elements there
    std::size_t offset;  // first element of the copy
    int device;          // -1: host memory
};

/// Checks both ranges and devices, then enqueues the copy of `count` elements.
void copy_async(std::string_view operation, StreamRef stream, const CopyEnd& source, const CopyEnd& target,
                std::size_t count, std::size_t element_bytes, const std::source_location& caller);
/// The same, then waits for it. Refused while the stream is being captured.
void copy_blocking(std::string_view operation, StreamRef stream, const CopyEnd& source, const CopyEnd& target,
                   std::size_t count, std::size_t element_bytes, const std::source_location& caller);
/// Enqueues the fill of `count` elements with one value of at most 256 bytes.
void fill_async(StreamRef stream, void* data, std::size_t count, const void* value, std::size_t value_bytes, int device,
                const std::source_location& caller);
/// The home stream's later work, the free included, comes after everything on `user` so far.
void order_after(StreamRef home, StreamRef user, const std::source_location& caller);

}  // namespace detail

/// Owns `size()` elements of `T` in device memory. Move-only; the top of this file says what they are ordered with.
template <class T>
class DeviceBuffer {
    static_assert(std::is_trivially_copyable_v<T>,
                  "tessera: DeviceBuffer<T> copies bytes between host and device, so T must be trivially copyable");
    static_assert(!std::is_const_v<T>,
                  "tessera: DeviceBuffer<T> owns writable memory: write DeviceBuffer<T>, not <const T>");
    static_assert(sizeof(T) <= 256, "tessera: elements of a DeviceBuffer have at most 256 bytes");

public:
    /// The element type.
    using value_type = T;

    /// Empty: no memory, no device, size 0.
    DeviceBuffer() = default;

    /// Allocates `size` elements with undefined contents, ordered on `home`. Does not synchronize. `size` may be 0.
    /// @throws Error `size_overflow`, `out_of_memory` (with what is free), `unsupported_device` for Allocation::pool on
    ///               a device without memory pools, `capture_violation` for Allocation::plain during a capture
    DeviceBuffer(StreamRef home, std::size_t size, Allocation allocation = Allocation::automatic,
                 std::source_location caller = std::source_location::current())
        : memory_(home, size, sizeof(T), allocation, caller)
    {}

    /// Allocates on `home` and copies `elements` there. Blocks until they are copied.
    static DeviceBuffer from_host(StreamRef home, gsl::span<const T> elements,
                                  std::source_location caller = std::source_location::current())
    {
        DeviceBuffer buffer(home, elements.size(), Allocation::automatic, caller);
        buffer.copy_from(elements, 0, caller);
        return buffer;
    }

    /// Takes over memory that cudaMallocAsync (`pool`) or cudaMalloc (`plain`) returned. It will be freed on `home`.
    /// @throws Error `wrong_memory` if it is not device memory, `device_mismatch`, `invalid_argument` if the kind is
    ///               not said
    static DeviceBuffer adopt(StreamRef home, RawAllocation<T> raw,
                              std::source_location caller = std::source_location::current())
    {
        DeviceBuffer buffer;
        buffer.memory_ = detail::DeviceMemory::adopt(home, raw.data, raw.size, sizeof(T), raw.allocation, caller);
        return buffer;
    }

    /// Gives the memory away; the buffer is empty afterwards. The caller frees it as `RawAllocation` says.
    [[nodiscard]] RawAllocation<T> release() && noexcept
    {
        RawAllocation<T> raw{data(), size(), memory_.allocation()};
        static_cast<void>(memory_.release());
        return raw;
    }

    /// The other one is empty afterwards.
    DeviceBuffer(DeviceBuffer&&) noexcept = default;
    /// The memory that was here is freed; the other one is empty afterwards.
    DeviceBuffer& operator=(DeviceBuffer&&) noexcept = default;
    DeviceBuffer(const DeviceBuffer&) = delete;             // would hide an allocation and a copy
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;  // say copy_from_async
    ~DeviceBuffer() = default;

    /// The address of the first element in device memory, or null.
    T* data() noexcept { return static_cast<T*>(memory_.data()); }
    /// The same, for reading.
    const T* data() const noexcept { return static_cast<const T*>(memory_.data()); }
    /// In elements.
    std::size_t size() const noexcept { return memory_.size(); }
    /// In bytes.
    std::size_t size_bytes() const noexcept { return size() * sizeof(T); }
    /// True if there are no elements.
    bool empty() const noexcept { return size() == 0; }
    /// The ordinal of the memory's device, -1 for a default-constructed or moved-from buffer.
    int device() const noexcept { return memory_.device(); }
    /// The home stream.
    /// @throws Error `empty_handle` for a default-constructed or moved-from buffer
    StreamRef stream(std::source_location caller = std::source_location::current()) const
    {
        return memory_.home("DeviceBuffer::stream", caller);
    }

    /// All elements. The span must not outlive the buffer.
    DeviceSpan<T> span() & noexcept { return {data(), size(), device()}; }
    /// The same, for reading.
    DeviceSpan<const T> span() const& noexcept { return {data(), size(), device()}; }
    void span() && = delete;  // the memory would be gone before the span is used
    void span() const&& = delete;

    /// The elements [offset, offset + count). @throws Error `out_of_range`
    DeviceSpan<T> subspan(std::size_t offset, std::size_t count,
                          std::source_location caller = std::source_location::current()) &
    {
        return span().subspan(offset, count, caller);
    }
    /// The same, for reading.
    DeviceSpan<const T> subspan(std::size_t offset, std::size_t count,
                                std::source_location caller = std::source_location::current()) const&
    {
        return span().subspan(offset, count, caller);
    }
    void subspan(std::size_t, std::size_t) && = delete;
    void subspan(std::size_t, std::size_t) const&& = delete;

    /// Views the first elements as a matrix, without gaps or with a leading dimension, e.g. `matrix(2, 3)`,
    /// `matrix(2, 3, ColumnMajor{})`, `matrix(2, 3, 8, RowMajor{})`. The view must not outlive the buffer.
    /// @throws Error `out_of_range` if the buffer is too short, `invalid_argument`, `size_overflow`
    template <StorageOrder Order = RowMajor>
    MatrixView<T, Order> matrix(std::int64_t rows, std::int64_t columns, Order order = {},
                                std::source_location caller = std::source_location::current()) &
    {
        return span().matrix(rows, columns, order, caller);
    }
    /// The same, for reading.
    template <StorageOrder Order = RowMajor>
    MatrixView<const T, Order> matrix(std::int64_t rows, std::int64_t columns, Order order = {},
                                      std::source_location caller = std::source_location::current()) const&
    {
        return span().matrix(rows, columns, order, caller);
    }
    /// The same, with a leading dimension.
    template <StorageOrder Order = RowMajor>
    MatrixView<T, Order> matrix(std::int64_t rows, std::int64_t columns, std::int64_t leading_dimension,
                                Order order = {}, std::source_location caller = std::source_location::current()) &
    {
        return span().matrix(rows, columns, leading_dimension, order, caller);
    }
    /// The same with a leading dimension, for reading.
    template <StorageOrder Order = RowMajor>
    MatrixView<const T, Order> matrix(std::int64_t rows, std::int64_t columns, std::int64_t leading_dimension,
                                      Order order = {},
                                      std::source_location caller = std::source_location::current()) const&
    {
        return span().matrix(rows, columns, leading_dimension, order, caller);
    }
    template <class... Arguments>
    void matrix(Arguments&&...) && = delete;  // the memory would be gone before the view is used
    template <class... Arguments>
    void matrix(Arguments&&...) const&& = delete;

    /// Copies host elements to [offset, offset + elements.size()). Ordered on the home stream; blocks until done.
    /// @throws Error `out_of_range`, `empty_handle`, `capture_violation`
    void copy_from(gsl::span<const T> elements, std::size_t offset = 0,
                   std::source_location caller = std::source_location::current())
    {
        detail::copy_blocking("DeviceBuffer::copy_from", memory_.home("DeviceBuffer::copy_from", caller),
                              {"the host span", elements.data(), elements.size(), 0, -1}, end(offset), elements.size(),
                              sizeof(T), caller);
    }

    /// Copies the elements [offset, offset + elements.size()) to the host. Ordered on the home stream; blocks until
    /// done.
    /// @throws Error `out_of_range`, `empty_handle`, `capture_violation`
    void copy_to(gsl::span<T> elements, std::size_t offset = 0,
                 std::source_location caller = std::source_location::current()) const
    {
        detail::copy_blocking("DeviceBuffer::copy_to", memory_.home("DeviceBuffer::copy_to", caller), end(offset),
                              {"the host span", elements.data(), elements.size(), 0, -1}, elements.size(), sizeof(T),
                              caller);
    }

    /// All elements, on the host. Ordered on the home stream; blocks until done.
    std::vector<T> to_vector(std::source_location caller = std::source_location::current()) const
    {
        std::vector<T> elements(size());
        if (!elements.empty()) {
            copy_to(elements, 0, caller);
        }
        return elements;
    }

    /// Copies `source` to [offset, offset + source.size()). Asynchronous, ordered on `stream`. `source` may die at once
    /// (its memory stays until the copy is done) but must not change before then.
    /// @throws Error `out_of_range`, `device_mismatch`; nothing was enqueued then
    void copy_from_async(StreamRef stream, PinnedBuffer<T>& source, std::size_t offset = 0,
                         std::source_location caller = std::source_location::current())
    {
        detail::copy_async("DeviceBuffer::copy_from_async", stream,
                           {"the pinned buffer", source.data(), source.size(), 0, -1}, end(offset), source.size(),
                           sizeof(T), caller);
        source.used_on(stream, caller);
    }

    /// Copies device elements to [offset, offset + source.size()). Asynchronous, ordered on `stream`, which must be of
    /// the buffer's device. `source` may be of another device.
    void copy_from_async(StreamRef stream, DeviceSpan<const T> source, std::size_t offset = 0,
                         std::source_location caller = std::source_location::current())
    {
        detail::copy_async("DeviceBuffer::copy_from_async", stream,
                           {"the source", source.data(), source.size(), 0, source.device()}, end(offset), source.size(),
                           sizeof(T), caller);
    }

    /// Copies the elements [offset, offset + target.size()) to `target`. Asynchronous, ordered on `stream`. Read
    /// `target` only after that point of the stream: target.synchronize() waits for it.
    void copy_to_async(StreamRef stream, PinnedBuffer<T>& target, std::size_t offset = 0,
                       std::source_location caller = std::source_location::current()) const
    {
        detail::copy_async("DeviceBuffer::copy_to_async", stream, end(offset),
                           {"the pinned buffer", target.data(), target.size(), 0, -1}, target.size(), sizeof(T),
                           caller);
        target.used_on(stream, caller);
    }

    /// Sets every element to `value`. Asynchronous, ordered on `stream`.
    void fill(StreamRef stream, const T& value, std::source_location caller = std::source_location::current())
    {
        detail::fill_async(stream, data(), size(), &value, sizeof(T), device(), caller);
    }

    /// The buffer's free (and all later work of its home stream) comes after everything enqueued on `stream` so far.
    /// Call it after the last use on a stream other than the home stream. Does not block the host.
    void used_on(StreamRef stream, std::source_location caller = std::source_location::current()) const
    {
        detail::order_after(memory_.home("DeviceBuffer::used_on", caller), stream, caller);
    }

private:
    detail::CopyEnd end(std::size_t offset) const noexcept
    {
        return {"the buffer", memory_.data(), memory_.size(), offset, memory_.device()};
    }

    detail::DeviceMemory memory_;
};

}  // namespace tessera
