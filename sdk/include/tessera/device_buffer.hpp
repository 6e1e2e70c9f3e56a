#pragma once

/// @file
/// @ingroup host_memory
/// @brief `DeviceBuffer<T>`: owns an array in device memory, allocated and freed in the order of a stream.

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <gsl/span>
#include <source_location>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "tessera/detail/element_count.hpp"
#include "tessera/detail/refused.hpp"
#include "tessera/device_span.hpp"
#include "tessera/memory_resource.hpp"
#include "tessera/pinned_buffer.hpp"
#include "tessera/stream.hpp"

namespace tessera {

/// Device memory without an owner: `DeviceBuffer::release` returns it and `DeviceBuffer::adopt` takes it.
template <class T>
struct RawAllocation {
    T* data;                ///< what cudaMallocAsync, cudaMalloc or the resource returned
    std::size_t size;       ///< in elements
    Allocation allocation;  ///< free `pool` with cudaFreeAsync, `plain` with cudaFree, `resource` with the next member
    MemoryResourceRef resource = {};  ///< for `resource`: resource.deallocate(data, bytes, 256, stream)
};

namespace detail {

/// The untyped owner inside of DeviceBuffer: all that does not depend on the element type.
class DeviceMemory {
public:
    DeviceMemory() = default;
    DeviceMemory(std::string_view operation, StreamRef stream, ElementCount count, std::size_t element_bytes,
                 Allocation allocation, MemoryResourceRef resource, const std::source_location& caller);
    static DeviceMemory adopt(StreamRef stream, ElementCount count, std::size_t element_bytes, void* data,
                              Allocation allocation, MemoryResourceRef resource, const std::source_location& caller);
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

    void* data() const noexcept { return memory_.data; }
    std::size_t size() const noexcept { return size_; }
    int device() const noexcept { return device_; }
    Allocation allocation() const noexcept { return memory_.allocation; }
    MemoryResourceRef resource() const noexcept { return memory_.resource; }
    /// @throws Error  `empty_handle` if there never was memory, or it was moved away. A size of 0 is valid.
    void require(std::string_view operation, const std::source_location& caller) const
    {
        if (device_ < 0) [[unlikely]] {
            raise_empty(operation, caller);
        }
    }
    StreamRef home(std::string_view operation, const std::source_location& caller) const
    {
        require(operation, caller);
        return {known_device, stream_, device_, state_};
    }
    void set_home(StreamRef home, const std::source_location& caller);
    void release() noexcept;

private:
    [[noreturn]] void raise_empty(std::string_view operation, const std::source_location& caller) const;
    void swap(DeviceMemory& other) noexcept;
    void free() noexcept;
    bool defer() const noexcept;

    OwnedMemory memory_;
    std::size_t size_ = 0;  // in elements
    cudaStream_t stream_ = nullptr;
    StreamState* state_ = nullptr;
    int device_ = -1;
    bool must_be_freed_ = false;         // 0 bytes need no free, unless a deleter must run
    bool allocated_in_capture_ = false;  // it is the graph's memory then, and is freed inside the capture
};

/// Does what std::unique_ptr does, without the compile time of <memory>.
template <class Object>
struct Holder {
    Object* object;

    ~Holder() { delete object; }
};

/// A caller's deleter as a resource, which frees once and then destroys itself.
template <class T, class Deleter>
struct DeleterResource {
    Deleter deleter;

    static void deallocate(void* self, void* memory, std::size_t /*bytes*/, std::size_t /*alignment*/,
                           cudaStream_t stream)
    {
        const Holder<DeleterResource> holder{static_cast<DeleterResource*>(self)};
        holder.object->deleter(static_cast<T*>(memory), stream);
    }
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
/// Does the same, then waits for it. Refused while the stream is being captured.
void copy_blocking(std::string_view operation, StreamRef stream, const CopyEnd& source, const CopyEnd& target,
                   std::size_t count, std::size_t element_bytes, const std::source_location& caller);
/// Enqueues the fill of `count` elements with one value of at most 256 bytes.
void fill_async(StreamRef stream, void* data, std::size_t count, const void* value, std::size_t value_bytes, int device,
                const std::source_location& caller);
/// Orders the home stream's later work, the free included, after everything on `user` so far.
void order_after(std::string_view operation, StreamRef home, StreamRef user, const std::source_location& caller);

}  // namespace detail

/// Owns `size()` elements of `T` in device memory. Move-only.
///
/// @code{.cpp}
/// DeviceBuffer<float> weights = DeviceBuffer<float>::from_host(stream, host_a);
/// DeviceBuffer<float> result(stream, m * n);
/// Gemm::launch(stream, weights.matrix(m, k), b.matrix(k, n), result.matrix(m, n));
/// std::vector<float> values = result.to_vector();
/// @endcode
///
/// @par Home stream
/// Allocation and free are ordered on the buffer's *home stream*. Later work of that stream can use the memory at once.
/// The memory is freed after the work that was enqueued there before the buffer was destroyed, and no thread waits. The
/// buffer keeps its home stream alive.
///
/// @par Other streams
/// Another stream that uses the buffer must be ordered with the home stream: call `stream.wait(buffer.stream())` before
/// its first use, and `buffer.used_on(stream)` after its last use, before the buffer is destroyed. The second is
/// PyTorch's record_stream.
/// @code{.cpp}
/// other.wait(buffer.stream());
/// Gemm::launch(other, buffer.matrix(m, k), b.matrix(k, n), d.matrix(m, n));
/// buffer.used_on(other);
/// @endcode
///
/// @par Memory
/// It comes from the device's pool, or from an allocator of yours: see MemoryResourceRef.
///
/// @par Empty buffers
/// A default-constructed, moved-from or released buffer has no memory and no device (`device()` is -1). What needs
/// memory throws `empty_handle`; `data()`, `size()` and `span()` describe nothing. A buffer of size 0 that was made on
/// a stream is not empty in this sense.
///
/// @par Thread safety
/// As for a container of the standard library. Functions that enqueue work (copies, fill, used_on) and const functions
/// may be called on one buffer at the same time. Move, destroy, `release` and `set_home` only while no other thread
/// uses the buffer. Streams, not threads, order the work on the elements.
///
/// @tparam T  a trivially copyable type of at most 256 bytes, not const
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

    /// An empty buffer: no memory, no device, size 0.
    DeviceBuffer() = default;

    /// Allocates `size` elements with undefined contents, ordered on `home`. Does not wait.
    ///
    /// @param home        the home stream; its device is the memory's
    /// @param size        number of elements, of any integer type; may be 0. Multiply extents as std::int64_t: an int
    ///                    product that overflows is noticed only if it is negative.
    /// @param allocation  how the memory is obtained
    /// @throws Error  `invalid_argument` for a negative size, `size_overflow`, `out_of_memory` (with the free bytes),
    ///                `unsupported_device` for Allocation::pool on a device without memory pools, `capture_violation`
    ///                for Allocation::plain during a capture, `empty_handle` if the stream was moved from
    DeviceBuffer(StreamRef home, detail::ElementCount size, Allocation allocation = Allocation::automatic,
                 std::source_location caller = std::source_location::current())
        : memory_("DeviceBuffer", home, size, sizeof(T), allocation, {}, caller)
    {}

    /// Allocates from `resource`, which must outlive the buffer. MemoryResourceRef has its contract.
    /// @throws Error  as above; `out_of_memory` if the resource returns null, `misaligned`, and what the resource
    ///                throws
    DeviceBuffer(StreamRef home, detail::ElementCount size, MemoryResourceRef resource,
                 std::source_location caller = std::source_location::current())
        : memory_("DeviceBuffer", home, size, sizeof(T), Allocation::resource, resource, caller)
    {}

    /// Allocates on `home` and copies `elements` there. Blocks until they are copied.
    /// @throws Error  as for the constructor; `capture_violation` while the stream is being captured
    static DeviceBuffer from_host(StreamRef home, gsl::span<const T> elements,
                                  std::source_location caller = std::source_location::current())
    {
        constexpr std::string_view operation = "DeviceBuffer::from_host";
        DeviceBuffer buffer;
        buffer.memory_ =
            detail::DeviceMemory(operation, home, elements.size(), sizeof(T), Allocation::automatic, {}, caller);
        buffer.copy_from_host(operation, elements, 0, caller);
        return buffer;
    }

    /// Takes over memory that cudaMallocAsync (`pool`), cudaMalloc (`plain`) or `raw.resource` returned. It will be
    /// freed on `home`. If this throws, the memory is still the caller's.
    /// @throws Error  `wrong_memory` if it is not device memory, or if the kind is not the one given; `device_mismatch`
    ///                if it is on another device than `home`; `invalid_argument` if the kind is not given
    static DeviceBuffer adopt(StreamRef home, RawAllocation<T> raw,
                              std::source_location caller = std::source_location::current())
    {
        DeviceBuffer buffer;
        buffer.memory_ =
            detail::DeviceMemory::adopt(home, raw.size, sizeof(T), raw.data, raw.allocation, raw.resource, caller);
        return buffer;
    }

    /// Takes over memory that `deleter(data, stream)` gives back. The deleter runs once, when the buffer is destroyed;
    /// `stream` is the home stream then, and its device is current. The memory may be reused after the work that is on
    /// the stream by then. The deleter can hold an owner that keeps the memory alive.
    ///
    /// @code{.cpp}
    /// const auto free = [](float* data, cudaStream_t stream) { cudaFreeAsync(data, stream); };
    /// auto owned = DeviceBuffer<float>::adopt(stream, floats, 4096, free);
    /// @endcode
    ///
    /// What the deleter throws goes to `dropped_errors()`. If this function throws, the memory is still the caller's
    /// and the deleter is not called.
    /// @throws Error  `wrong_memory` if kernels cannot reach the memory, `device_mismatch`, `invalid_argument`
    template <class Deleter>
        requires std::invocable<Deleter&, T*, cudaStream_t>
    static DeviceBuffer adopt(StreamRef home, T* data, detail::ElementCount size, Deleter deleter,
                              std::source_location caller = std::source_location::current())
    {
        using Resource = detail::DeleterResource<T, Deleter>;
        detail::Holder<Resource> resource{new Resource{std::move(deleter)}};
        // With a braced initializer, nvcc 13.0 passes broken code to the host compiler.
        const MemoryResourceRef given_back(resource.object, nullptr, &Resource::deallocate);
        DeviceBuffer buffer;
        buffer.memory_ =
            detail::DeviceMemory::adopt(home, size, sizeof(T), data, Allocation::resource, given_back, caller);
        resource.object = nullptr;  // now owned by the buffer
        return buffer;
    }

    /// Gives the memory away; the buffer is empty afterwards. The caller frees it as `RawAllocation` says.
    /// @return the memory, or null if the buffer was empty
    [[nodiscard]] RawAllocation<T> release() && noexcept
    {
        const RawAllocation<T> raw{data(), size(), memory_.allocation(), memory_.resource()};
        memory_.release();
        return raw;
    }

    /// Moves the memory; `other` is empty afterwards.
    DeviceBuffer(DeviceBuffer&&) noexcept = default;
    /// Frees this buffer's memory, then moves; `other` is empty afterwards.
    DeviceBuffer& operator=(DeviceBuffer&&) noexcept = default;
    DeviceBuffer(const DeviceBuffer&) = delete;             // would hide an allocation and a copy
    DeviceBuffer& operator=(const DeviceBuffer&) = delete;  // use copy_from_async
    /// Frees the memory after the work that is on the home stream by now. Does not wait, except for memory of
    /// Allocation::plain, which cudaFree needs idle.
    ~DeviceBuffer() = default;

    /// Returns the address of the first element in device memory, or null.
    T* data() noexcept { return static_cast<T*>(memory_.data()); }
    /// Returns the address of the first element in device memory, for reading.
    const T* data() const noexcept { return static_cast<const T*>(memory_.data()); }
    /// Returns the number of elements.
    std::size_t size() const noexcept { return memory_.size(); }
    /// Returns the size in bytes.
    std::size_t size_bytes() const noexcept { return size() * sizeof(T); }
    /// Returns true if there are no elements.
    bool empty() const noexcept { return size() == 0; }
    /// Returns the ordinal of the memory's device, -1 for an empty buffer.
    int device() const noexcept { return memory_.device(); }
    /// Returns the home stream.
    /// @throws Error  `empty_handle` for an empty buffer
    StreamRef stream(std::source_location caller = std::source_location::current()) const
    {
        return memory_.home("DeviceBuffer::stream", caller);
    }
    /// Makes `home` the home stream. It waits for everything that is on the old one so far, so that the free comes
    /// after both. Does not block the host.
    /// @throws Error  `empty_handle`, `device_mismatch`, `capture_violation` if one of the streams is being captured,
    ///                `invalid_argument` if the memory's resource frees in the order of the old stream only
    void set_home(StreamRef home, std::source_location caller = std::source_location::current())
    {
        memory_.set_home(home, caller);
    }

    /// Returns all elements. The span must not outlive the buffer. For an empty buffer it is empty and of no device.
    DeviceSpan<T> span() & noexcept { return {data(), size(), device()}; }
    /// Returns all elements, for reading.
    DeviceSpan<const T> span() const& noexcept { return {data(), size(), device()}; }
    /// Refuses to compile for a temporary buffer.
    template <class Element = T>
    auto span() const&&
    {
        static_assert(detail::always_false<Element>,
                      "tessera: span() of a temporary DeviceBuffer: its memory would be gone before the span is used. "
                      "Give the buffer a name");
        return DeviceSpan<Element>();
    }

    /// Returns the elements [offset, offset + count).
    /// @throws Error  `out_of_range`, `empty_handle`
    DeviceSpan<T> subspan(std::size_t offset, std::size_t count,
                          std::source_location caller = std::source_location::current()) &
    {
        require_range(offset, count, caller);
        return {data() + offset, count, device()};
    }
    /// Returns the elements [offset, offset + count), for reading.
    DeviceSpan<const T> subspan(std::size_t offset, std::size_t count,
                                std::source_location caller = std::source_location::current()) const&
    {
        require_range(offset, count, caller);
        return {data() + offset, count, device()};
    }
    /// Returns the elements from `offset` to the end.
    /// @throws Error  `out_of_range`, `empty_handle`
    DeviceSpan<T> subspan(std::size_t offset, std::source_location caller = std::source_location::current()) &
    {
        return subspan(offset, offset <= size() ? size() - offset : 0, caller);
    }
    /// Returns the elements from `offset` to the end, for reading.
    DeviceSpan<const T> subspan(std::size_t offset,
                                std::source_location caller = std::source_location::current()) const&
    {
        return subspan(offset, offset <= size() ? size() - offset : 0, caller);
    }
    /// Refuses to compile for a temporary buffer.
    template <class Element = T>
    auto subspan(std::size_t /*offset*/, std::size_t /*count*/ = 0) const&&
    {
        static_assert(detail::always_false<Element>,
                      "tessera: subspan() of a temporary DeviceBuffer: its memory would be gone before the span is "
                      "used. Give the buffer a name");
        return DeviceSpan<Element>();
    }

    /// Views the first rows * columns elements as a matrix without gaps, for example `matrix(2, 3)` or `matrix(2, 3,
    /// ColumnMajor{})`. Elements of CUDA's `__half`, `__nv_bfloat16`, `__nv_fp8_e4m3` and `__nv_fp8_e5m2` are viewed as
    /// f16, bf16, f8e4m3 and f8e5m2. The view must not outlive the buffer.
    /// @throws Error  `out_of_range` if the buffer is too short, `empty_handle` if it is empty, `invalid_argument` for
    ///                a negative extent, `size_overflow`
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<T>, Order> matrix(std::int64_t rows, std::int64_t columns, Order /*order*/ = {},
                                                   std::source_location caller = std::source_location::current()) &
    {
        memory_.require("DeviceBuffer::matrix", caller);
        return detail::checked_matrix<Order>("DeviceBuffer::matrix", data(), size(), device(), rows, columns,
                                             detail::packed_leading_dimension<Order>(rows, columns), caller);
    }
    /// Views the first rows * columns elements as a matrix without gaps, for reading.
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<const T>, Order> matrix(
        std::int64_t rows, std::int64_t columns, Order /*order*/ = {},
        std::source_location caller = std::source_location::current()) const&
    {
        memory_.require("DeviceBuffer::matrix", caller);
        return detail::checked_matrix<Order>("DeviceBuffer::matrix", data(), size(), device(), rows, columns,
                                             detail::packed_leading_dimension<Order>(rows, columns), caller);
    }
    /// Views the first elements as a matrix whose rows (or columns) are `leading_dimension` elements apart, for example
    /// `matrix(2, 3, 8, RowMajor{})`.
    /// @throws Error  as above; `invalid_argument` if the leading dimension is too small
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<T>, Order> matrix(std::int64_t rows, std::int64_t columns,
                                                   std::int64_t leading_dimension, Order /*order*/ = {},
                                                   std::source_location caller = std::source_location::current()) &
    {
        memory_.require("DeviceBuffer::matrix", caller);
        return detail::checked_matrix<Order>("DeviceBuffer::matrix", data(), size(), device(), rows, columns,
                                             leading_dimension, caller);
    }
    /// Views the first elements as a matrix with a leading dimension, for reading.
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<const T>, Order> matrix(
        std::int64_t rows, std::int64_t columns, std::int64_t leading_dimension, Order /*order*/ = {},
        std::source_location caller = std::source_location::current()) const&
    {
        memory_.require("DeviceBuffer::matrix", caller);
        return detail::checked_matrix<Order>("DeviceBuffer::matrix", data(), size(), device(), rows, columns,
                                             leading_dimension, caller);
    }
    /// Refuses to compile for a temporary buffer.
    template <StorageOrder Order = RowMajor, class... Arguments>
    auto matrix(Arguments&&... arguments) const&&
    {
        static_assert(
            detail::always_false<Order>,
            "tessera: matrix() of a temporary DeviceBuffer: its memory would be gone before the view is used. "
            "Give the buffer a name");
        return const_cast<DeviceBuffer&>(*this).matrix(std::forward<Arguments>(arguments)...);
    }

    /// Views the first elements as equally spaced matrices, for example `matrices({.rows = 2, .columns = 3, .count =
    /// 10})`; see BatchLayout. Matrices that overlap can be read but not written: a product refuses them as its output.
    /// The view must not outlive the buffer.
    /// @throws Error  `out_of_range` if the buffer is too short, `empty_handle` if it is empty, `invalid_argument`,
    ///                `size_overflow`
    template <StorageOrder Order = RowMajor>
    BatchView<detail::ElementOf<T>, Order> matrices(const BatchLayout& layout, Order /*order*/ = {},
                                                    std::source_location caller = std::source_location::current()) &
    {
        memory_.require("DeviceBuffer::matrices", caller);
        return detail::checked_matrices<Order>("DeviceBuffer::matrices", data(), size(), device(), layout, caller);
    }
    /// Views the first elements as equally spaced matrices, for reading.
    template <StorageOrder Order = RowMajor>
    BatchView<detail::ElementOf<const T>, Order> matrices(
        const BatchLayout& layout, Order /*order*/ = {},
        std::source_location caller = std::source_location::current()) const&
    {
        memory_.require("DeviceBuffer::matrices", caller);
        return detail::checked_matrices<Order>("DeviceBuffer::matrices", data(), size(), device(), layout, caller);
    }
    /// Refuses to compile for a temporary buffer.
    template <StorageOrder Order = RowMajor>
    auto matrices(const BatchLayout& layout, Order order = {}) const&&
    {
        static_assert(
            detail::always_false<Order>,
            "tessera: matrices() of a temporary DeviceBuffer: its memory would be gone before the view is used. "
            "Give the buffer a name");
        return const_cast<DeviceBuffer&>(*this).matrices(layout, order);
    }

    /// Copies host elements to [offset, offset + elements.size()). Ordered on the home stream; blocks until done.
    /// @throws Error  `out_of_range`, `empty_handle`, `capture_violation` while the home stream is being captured
    void copy_from(gsl::span<const T> elements, std::size_t offset = 0,
                   std::source_location caller = std::source_location::current())
    {
        copy_from_host("DeviceBuffer::copy_from", elements, offset, caller);
    }

    /// Copies the elements [offset, offset + elements.size()) to the host. Ordered on the home stream; blocks until
    /// done.
    /// @throws Error  `out_of_range`, `empty_handle`, `capture_violation` while the home stream is being captured
    void copy_to(gsl::span<T> elements, std::size_t offset = 0,
                 std::source_location caller = std::source_location::current()) const
    {
        copy_to_host("DeviceBuffer::copy_to", elements, offset, caller);
    }

    /// Returns all elements in a vector on the host. Ordered on the home stream; blocks until done.
    /// @throws Error  `empty_handle`, `capture_violation` while the home stream is being captured
    std::vector<T> to_vector(std::source_location caller = std::source_location::current()) const
    {
        constexpr std::string_view operation = "DeviceBuffer::to_vector";
        memory_.require(operation, caller);
        std::vector<T> elements(size());
        if (!elements.empty()) {
            copy_to_host(operation, elements, 0, caller);
        }
        return elements;
    }

    /// Copies `source` to [offset, offset + source.size()). Asynchronous, ordered on `stream`.
    ///
    /// `source` may be destroyed at once (its memory stays until the copy is done), but its elements must not change
    /// before then. Element access through the pinned buffer waits.
    /// @param stream  a stream of the buffer's device
    /// @param source  pinned host elements
    /// @param offset  in elements
    /// @throws Error  `out_of_range`, `device_mismatch`, `empty_handle` if either buffer is empty; nothing was enqueued
    ///                then
    void copy_from_async(StreamRef stream, PinnedBuffer<T>& source, std::size_t offset = 0,
                         std::source_location caller = std::source_location::current())
    {
        constexpr std::string_view operation = "DeviceBuffer::copy_from_async";
        memory_.require(operation, caller);
        source.memory_.require(operation, caller);
        detail::copy_async(operation, stream, {"the pinned buffer", source.data(), source.size(), 0, -1}, end(offset),
                           source.size(), sizeof(T), caller);
        source.memory_.used_on(stream, detail::PinnedUse::reads, operation, caller);
    }

    /// Copies device elements to [offset, offset + source.size()). Asynchronous, ordered on `stream`, which must be of
    /// this buffer's device. `source` may be on another device.
    /// @throws Error  `out_of_range`, `device_mismatch`, `empty_handle`; nothing was enqueued then
    void copy_from_async(StreamRef stream, DeviceSpan<const T> source, std::size_t offset = 0,
                         std::source_location caller = std::source_location::current())
    {
        constexpr std::string_view operation = "DeviceBuffer::copy_from_async";
        memory_.require(operation, caller);
        detail::copy_async(operation, stream, {"the source", source.data(), source.size(), 0, source.device()},
                           end(offset), source.size(), sizeof(T), caller);
    }

    /// Copies the elements [offset, offset + target.size()) to `target`. Asynchronous, ordered on `stream`. Access to
    /// `target`'s elements waits for the copy; code that uses `target.data()` must call `target.synchronize()` first.
    /// @throws Error  `out_of_range`, `device_mismatch`, `empty_handle` if either buffer is empty; nothing was enqueued
    ///                then
    void copy_to_async(StreamRef stream, PinnedBuffer<T>& target, std::size_t offset = 0,
                       std::source_location caller = std::source_location::current()) const
    {
        constexpr std::string_view operation = "DeviceBuffer::copy_to_async";
        memory_.require(operation, caller);
        target.memory_.require(operation, caller);
        detail::copy_async(operation, stream, end(offset), {"the pinned buffer", target.data(), target.size(), 0, -1},
                           target.size(), sizeof(T), caller);
        target.memory_.used_on(stream, detail::PinnedUse::writes, operation, caller);
    }

    /// Sets every element to `value`. Asynchronous, ordered on `stream`.
    /// @throws Error  `empty_handle`, `device_mismatch`
    void fill(StreamRef stream, const T& value, std::source_location caller = std::source_location::current())
    {
        memory_.require("DeviceBuffer::fill", caller);
        detail::fill_async(stream, data(), size(), &value, sizeof(T), device(), caller);
    }

    /// Orders the buffer's free, and all later work of its home stream, after everything enqueued on `stream` so far.
    /// Does not block the host.
    ///
    /// Call it after the last use on a stream other than the home stream. PyTorch's record_stream does the same for the
    /// reuse of the memory; here, later work of the home stream waits, too.
    /// @throws Error  `empty_handle`
    void used_on(StreamRef stream, std::source_location caller = std::source_location::current()) const
    {
        constexpr std::string_view operation = "DeviceBuffer::used_on";
        detail::order_after(operation, memory_.home(operation, caller), stream, caller);
    }

private:
    void require_range(std::size_t offset, std::size_t count, const std::source_location& caller) const
    {
        memory_.require("DeviceBuffer::subspan", caller);
        detail::require_range("DeviceBuffer::subspan", caller, offset, count, size());
    }
    void copy_from_host(std::string_view operation, gsl::span<const T> elements, std::size_t offset,
                        const std::source_location& caller)
    {
        detail::copy_blocking(operation, memory_.home(operation, caller),
                              {"the host span", elements.data(), elements.size(), 0, -1}, end(offset), elements.size(),
                              sizeof(T), caller);
    }
    void copy_to_host(std::string_view operation, gsl::span<T> elements, std::size_t offset,
                      const std::source_location& caller) const
    {
        detail::copy_blocking(operation, memory_.home(operation, caller), end(offset),
                              {"the host span", elements.data(), elements.size(), 0, -1}, elements.size(), sizeof(T),
                              caller);
    }
    detail::CopyEnd end(std::size_t offset) const noexcept
    {
        return {"the buffer", memory_.data(), memory_.size(), offset, memory_.device()};
    }

    detail::DeviceMemory memory_;
};

}  // namespace tessera
