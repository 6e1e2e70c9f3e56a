#pragma once

/// `DeviceBuffer<T>`: owns an array in device memory.
///
/// Allocation and free are ordered on the buffer's *home stream*: memory is usable by later work of that stream at
/// once, and is given back after the work that was enqueued there before the buffer died, without anybody waiting.
/// Another stream that uses the buffer must be ordered with the home stream: `stream.wait(home)` before its first use,
/// and `buffer.used_on(stream)` (PyTorch's record_stream) after its last, before the buffer dies. The home stream itself
/// is kept alive by the buffer.
///
/// Memory comes from the device's pool, or from an allocator of yours: see memory_resource.hpp.

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

/// Device memory outside of any owner: what `DeviceBuffer::release` gives and `adopt` takes.
template <class T>
struct RawAllocation {
    T* data;                ///< what cudaMallocAsync, cudaMalloc or the resource returned
    std::size_t size;       ///< in elements
    Allocation allocation;  ///< `pool`: free with cudaFreeAsync; `plain`: with cudaFree; `resource`: by the next member
    MemoryResourceRef resource = {};  ///< of Allocation::resource: resource.deallocate(data, bytes, 256, stream)
};

namespace detail {

/// The untyped owner behind DeviceBuffer: all that does not depend on the element type.
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
    /// @throws Error `empty_handle` if there never was memory, or it was moved away. Size 0 is no reason.
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
    bool must_be_freed_ = false;         // memory of 0 bytes need not be, unless its deleter waits for it
    bool allocated_in_capture_ = false;  // then it is the graph's memory, and its free belongs into the capture
};

/// What std::unique_ptr is, without the weight of <memory>.
template <class Object>
struct Holder {
    Object* object;

    ~Holder() { delete object; }
};

/// A deleter of a caller, as a resource that frees once and then itself.
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
/// The same, then waits for it. Refused while the stream is being captured.
void copy_blocking(std::string_view operation, StreamRef stream, const CopyEnd& source, const CopyEnd& target,
                   std::size_t count, std::size_t element_bytes, const std::source_location& caller);
/// Enqueues the fill of `count` elements with one value of at most 256 bytes.
void fill_async(StreamRef stream, void* data, std::size_t count, const void* value, std::size_t value_bytes, int device,
                const std::source_location& caller);
/// The home stream's later work, the free included, comes after everything on `user` so far.
void order_after(std::string_view operation, StreamRef home, StreamRef user, const std::source_location& caller);

}  // namespace detail

/// Owns `size()` elements of `T` in device memory. Move-only; the top of this file says what they are ordered with.
///
/// A default-constructed, moved-from or released buffer has no memory and no device (`device()` is -1): what needs memory
/// throws `empty_handle`; `data()`, `size()` and `span()` describe nothing. A buffer of size 0 that was made on a stream
/// is not such a one.
///
/// Thread safety: as a container of the standard library's. Functions that enqueue work (copies, fill, used_on) and const
/// functions may be called at the same time, on one buffer; moving, destroying, `release` and `set_home` only while
/// nobody else uses it. The order of work on the elements is that of streams, not of threads.
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

    /// Allocates `size` elements (any integer type) with undefined contents, ordered on `home`. Does not synchronize.
    /// `size` may be 0. A product of two ints that overflows is not seen here unless it comes out negative: multiply as
    /// std::int64_t.
    /// @throws Error `invalid_argument` for a negative size, `size_overflow`, `out_of_memory` (with what is free),
    ///               `unsupported_device` for Allocation::pool on a device without memory pools, `capture_violation` for
    ///               Allocation::plain during a capture
    DeviceBuffer(StreamRef home, detail::ElementCount size, Allocation allocation = Allocation::automatic,
                 std::source_location caller = std::source_location::current())
        : memory_("DeviceBuffer", home, size, sizeof(T), allocation, {}, caller)
    {}

    /// The same with memory of `resource`, which must outlive the buffer: memory_resource.hpp has its contract.
    /// @throws Error as above, `out_of_memory` if the resource returns null, `misaligned`, and what the resource throws
    DeviceBuffer(StreamRef home, detail::ElementCount size, MemoryResourceRef resource,
                 std::source_location caller = std::source_location::current())
        : memory_("DeviceBuffer", home, size, sizeof(T), Allocation::resource, resource, caller)
    {}

    /// Allocates on `home` and copies `elements` there. Blocks until they are copied.
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

    /// Takes over memory that cudaMallocAsync (`pool`), cudaMalloc (`plain`) or `raw.resource` returned. It will be freed
    /// on `home`. If this throws, the memory is still the caller's.
    /// @throws Error `wrong_memory` if it is not device memory, or from a pool where `plain` was said, or the reverse;
    ///               `device_mismatch`, `invalid_argument` if the kind is not said
    static DeviceBuffer adopt(StreamRef home, RawAllocation<T> raw,
                              std::source_location caller = std::source_location::current())
    {
        DeviceBuffer buffer;
        buffer.memory_ =
            detail::DeviceMemory::adopt(home, raw.size, sizeof(T), raw.data, raw.allocation, raw.resource, caller);
        return buffer;
    }

    /// Takes over memory that `deleter(data, stream)` gives back, once, when the buffer dies: `stream` is then the home
    /// stream, its device is current, and the memory may be reused after the work that is on the stream by then. What
    /// keeps the memory alive (an owner elsewhere) can be captured in the deleter. What it throws goes to
    /// `dropped_errors()`. If this throws, the memory is still the caller's and the deleter is not called.
    /// @throws Error `wrong_memory` if it is not memory that kernels reach, `device_mismatch`, `invalid_argument`
    template <class Deleter>
        requires std::invocable<Deleter&, T*, cudaStream_t>
    static DeviceBuffer adopt(StreamRef home, T* data, detail::ElementCount size, Deleter deleter,
                              std::source_location caller = std::source_location::current())
    {
        using Resource = detail::DeleterResource<T, Deleter>;
        detail::Holder<Resource> resource{new Resource{std::move(deleter)}};
        // With braces for the constructor, nvcc 13.0 hands broken code to the host compiler.
        const MemoryResourceRef given_back(resource.object, nullptr, &Resource::deallocate);
        DeviceBuffer buffer;
        buffer.memory_ =
            detail::DeviceMemory::adopt(home, size, sizeof(T), data, Allocation::resource, given_back, caller);
        resource.object = nullptr;  // the buffer's now
        return buffer;
    }

    /// Gives the memory away; the buffer is empty afterwards. The caller frees it as `RawAllocation` says. Null if the
    /// buffer was empty.
    [[nodiscard]] RawAllocation<T> release() && noexcept
    {
        const RawAllocation<T> raw{data(), size(), memory_.allocation(), memory_.resource()};
        memory_.release();
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
    /// Makes `home` the home stream, which waits for everything that is on the old one so far; its free comes after both
    /// then. Does not block the host.
    /// @throws Error `empty_handle`, `device_mismatch`, `capture_violation` if one of the streams is being captured,
    ///               `invalid_argument` if the memory's resource frees in the order of the old stream only
    void set_home(StreamRef home, std::source_location caller = std::source_location::current())
    {
        memory_.set_home(home, caller);
    }

    /// All elements. The span must not outlive the buffer. Of a buffer without memory it is empty and of no device.
    DeviceSpan<T> span() & noexcept { return {data(), size(), device()}; }
    /// The same, for reading.
    DeviceSpan<const T> span() const& noexcept { return {data(), size(), device()}; }
    /// Refused.
    template <class Element = T>
    auto span() const&&
    {
        static_assert(detail::always_false<Element>,
                      "tessera: span() of a temporary DeviceBuffer: its memory would be gone before the span is used. "
                      "Give the buffer a name");
        return DeviceSpan<Element>();
    }

    /// The elements [offset, offset + count). @throws Error `out_of_range`, `empty_handle`
    DeviceSpan<T> subspan(std::size_t offset, std::size_t count,
                          std::source_location caller = std::source_location::current()) &
    {
        require_range(offset, count, caller);
        return {data() + offset, count, device()};
    }
    /// The same, for reading.
    DeviceSpan<const T> subspan(std::size_t offset, std::size_t count,
                                std::source_location caller = std::source_location::current()) const&
    {
        require_range(offset, count, caller);
        return {data() + offset, count, device()};
    }
    /// The elements from `offset` to the end. @throws Error `out_of_range`, `empty_handle`
    DeviceSpan<T> subspan(std::size_t offset, std::source_location caller = std::source_location::current()) &
    {
        return subspan(offset, offset <= size() ? size() - offset : 0, caller);
    }
    /// The same, for reading.
    DeviceSpan<const T> subspan(std::size_t offset,
                                std::source_location caller = std::source_location::current()) const&
    {
        return subspan(offset, offset <= size() ? size() - offset : 0, caller);
    }
    /// Refused.
    template <class Element = T>
    auto subspan(std::size_t /*offset*/, std::size_t /*count*/ = 0) const&&
    {
        static_assert(detail::always_false<Element>,
                      "tessera: subspan() of a temporary DeviceBuffer: its memory would be gone before the span is "
                      "used. Give the buffer a name");
        return DeviceSpan<Element>();
    }

    /// Views the first elements as a matrix, without gaps or with a leading dimension, e.g. `matrix(2, 3)`,
    /// `matrix(2, 3, ColumnMajor{})`, `matrix(2, 3, 8, RowMajor{})`. Elements of CUDA's `__half`, `__nv_bfloat16`,
    /// `__nv_fp8_e4m3` and `__nv_fp8_e5m2` are viewed as f16, bf16, f8e4m3 and f8e5m2. The view must not outlive the
    /// buffer.
    /// @throws Error `out_of_range` if the buffer is too short, `empty_handle` if it was moved from, `invalid_argument`,
    ///               `size_overflow`
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<T>, Order> matrix(std::int64_t rows, std::int64_t columns, Order /*order*/ = {},
                                                   std::source_location caller = std::source_location::current()) &
    {
        memory_.require("DeviceBuffer::matrix", caller);
        return detail::checked_matrix<Order>("DeviceBuffer::matrix", data(), size(), device(), rows, columns,
                                             detail::packed_leading_dimension<Order>(rows, columns), caller);
    }
    /// The same, for reading.
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<const T>, Order> matrix(
        std::int64_t rows, std::int64_t columns, Order /*order*/ = {},
        std::source_location caller = std::source_location::current()) const&
    {
        memory_.require("DeviceBuffer::matrix", caller);
        return detail::checked_matrix<Order>("DeviceBuffer::matrix", data(), size(), device(), rows, columns,
                                             detail::packed_leading_dimension<Order>(rows, columns), caller);
    }
    /// The same, with a leading dimension.
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<T>, Order> matrix(std::int64_t rows, std::int64_t columns,
                                                   std::int64_t leading_dimension, Order /*order*/ = {},
                                                   std::source_location caller = std::source_location::current()) &
    {
        memory_.require("DeviceBuffer::matrix", caller);
        return detail::checked_matrix<Order>("DeviceBuffer::matrix", data(), size(), device(), rows, columns,
                                             leading_dimension, caller);
    }
    /// The same with a leading dimension, for reading.
    template <StorageOrder Order = RowMajor>
    MatrixView<detail::ElementOf<const T>, Order> matrix(
        std::int64_t rows, std::int64_t columns, std::int64_t leading_dimension, Order /*order*/ = {},
        std::source_location caller = std::source_location::current()) const&
    {
        memory_.require("DeviceBuffer::matrix", caller);
        return detail::checked_matrix<Order>("DeviceBuffer::matrix", data(), size(), device(), rows, columns,
                                             leading_dimension, caller);
    }
    /// Refused.
    template <StorageOrder Order = RowMajor, class... Arguments>
    auto matrix(Arguments&&... arguments) const&&
    {
        static_assert(
            detail::always_false<Order>,
            "tessera: matrix() of a temporary DeviceBuffer: its memory would be gone before the view is used. "
            "Give the buffer a name");
        return const_cast<DeviceBuffer&>(*this).matrix(std::forward<Arguments>(arguments)...);
    }

    /// Views the first elements as equally spaced matrices, e.g. `matrices({.rows = 2, .columns = 3, .count = 10})`; see
    /// BatchLayout. Matrices that overlap can be read but not written: as an output of a product they are refused. The
    /// view must not outlive the buffer.
    /// @throws Error `out_of_range` if the buffer is too short, `empty_handle` if it was moved from, `invalid_argument`,
    ///               `size_overflow`
    template <StorageOrder Order = RowMajor>
    BatchView<detail::ElementOf<T>, Order> matrices(const BatchLayout& layout, Order /*order*/ = {},
                                                    std::source_location caller = std::source_location::current()) &
    {
        memory_.require("DeviceBuffer::matrices", caller);
        return detail::checked_matrices<Order>("DeviceBuffer::matrices", data(), size(), device(), layout, caller);
    }
    /// The same, for reading.
    template <StorageOrder Order = RowMajor>
    BatchView<detail::ElementOf<const T>, Order> matrices(
        const BatchLayout& layout, Order /*order*/ = {},
        std::source_location caller = std::source_location::current()) const&
    {
        memory_.require("DeviceBuffer::matrices", caller);
        return detail::checked_matrices<Order>("DeviceBuffer::matrices", data(), size(), device(), layout, caller);
    }
    /// Refused.
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
    /// @throws Error `out_of_range`, `empty_handle`, `capture_violation`
    void copy_from(gsl::span<const T> elements, std::size_t offset = 0,
                   std::source_location caller = std::source_location::current())
    {
        copy_from_host("DeviceBuffer::copy_from", elements, offset, caller);
    }

    /// Copies the elements [offset, offset + elements.size()) to the host. Ordered on the home stream; blocks until
    /// done.
    /// @throws Error `out_of_range`, `empty_handle`, `capture_violation`
    void copy_to(gsl::span<T> elements, std::size_t offset = 0,
                 std::source_location caller = std::source_location::current()) const
    {
        copy_to_host("DeviceBuffer::copy_to", elements, offset, caller);
    }

    /// All elements, on the host. Ordered on the home stream; blocks until done.
    /// @throws Error `empty_handle`, `capture_violation`
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

    /// Copies `source` to [offset, offset + source.size()). Asynchronous, ordered on `stream`. `source` may die at once
    /// (its memory stays until the copy is done) but must not change before then.
    /// @throws Error `out_of_range`, `device_mismatch`, `empty_handle` if either was moved from; nothing was enqueued
    ///               then
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
    /// the buffer's device. `source` may be of another device.
    void copy_from_async(StreamRef stream, DeviceSpan<const T> source, std::size_t offset = 0,
                         std::source_location caller = std::source_location::current())
    {
        constexpr std::string_view operation = "DeviceBuffer::copy_from_async";
        memory_.require(operation, caller);
        detail::copy_async(operation, stream, {"the source", source.data(), source.size(), 0, source.device()},
                           end(offset), source.size(), sizeof(T), caller);
    }

    /// Copies the elements [offset, offset + target.size()) to `target`. Asynchronous, ordered on `stream`. Access to
    /// `target`'s elements waits for it; what goes by `target.data()` must call target.synchronize() first.
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

    /// Sets every element to `value`. Asynchronous, ordered on `stream`. @throws Error `empty_handle`, `device_mismatch`
    void fill(StreamRef stream, const T& value, std::source_location caller = std::source_location::current())
    {
        memory_.require("DeviceBuffer::fill", caller);
        detail::fill_async(stream, data(), size(), &value, sizeof(T), device(), caller);
    }

    /// The buffer's free (and all later work of its home stream) comes after everything enqueued on `stream` so far.
    /// Call it after the last use on a stream other than the home stream. Does not block the host. PyTorch calls it
    /// record_stream; unlike there, later work of the home stream waits, too, and not only the reuse of the memory.
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
