#include "tessera/device_buffer.hpp"

#include <fmt/format.h>

#include "kernels/fill.hpp"
#include "memory/memory_size.hpp"
#include "memory/owned_memory.hpp"

namespace tessera::detail {
namespace {

Allocation resolve(Allocation wanted, MemoryResourceRef resource, const DeviceProperties& properties,
                   std::string_view operation, const std::source_location& caller)
{
    if (wanted == Allocation::automatic) {
        return properties.has_memory_pools ? Allocation::pool : Allocation::plain;
    }
    if (wanted == Allocation::pool && !properties.has_memory_pools) {
        raise(ErrorCode::unsupported_device, operation, caller, fmt::format("{} has no memory pools", properties.name),
              "Allocation::plain or Allocation::automatic");
    }
    if (wanted == Allocation::resource && !resource) {
        raise(ErrorCode::invalid_argument, operation, caller, "the MemoryResourceRef is empty",
              "a MemoryResourceRef to your resource, or Allocation::automatic");
    }
    return wanted;
}

void require_not_capturing(std::string_view operation, StreamRef stream, const char* what,
                           const std::source_location& caller)
{
    if (stream.is_capturing()) {
        raise(ErrorCode::capture_violation, operation, caller,
              fmt::format("the stream is being captured into a graph, and {} cannot be captured", what),
              "do it before the capture begins");
    }
}

/// Refuses page-locked host memory: kernels can reach it, but cudaFree does not free it.
void require_not_pinned(std::string_view operation, const void* data, const std::source_location& caller)
{
    cudaPointerAttributes attributes{};
    check(cudaPointerGetAttributes(&attributes, data), "cudaPointerGetAttributes", operation, caller);
    if (attributes.type == cudaMemoryTypeHost) {
        raise(ErrorCode::wrong_memory, operation, caller,
              fmt::format("{} is page-locked host memory, not device memory", fmt::ptr(data)),
              "PinnedBuffer<T>::adopt");
    }
}

/// Refuses memory of the other kind: each kind needs its own function to free it.
void require_origin(std::string_view operation, const void* data, Allocation said, const std::source_location& caller)
{
    const KnownOrigin origin = origin_of(data);
    if (said == Allocation::pool && origin == KnownOrigin::no_pool) {
        raise(ErrorCode::wrong_memory, operation, caller,
              fmt::format("{} is not from a memory pool, but Allocation::pool was passed", fmt::ptr(data)),
              "Allocation::plain for memory from cudaMalloc");
    }
    if (said == Allocation::plain && origin == KnownOrigin::pool) {
        raise(ErrorCode::wrong_memory, operation, caller,
              fmt::format("{} is from a memory pool, but Allocation::plain was passed", fmt::ptr(data)),
              "Allocation::pool for memory from cudaMallocAsync");
    }
}

}  // namespace

std::size_t require_byte_count(std::string_view operation, std::size_t count, std::size_t element_bytes,
                               const std::source_location& caller)
{
    constexpr std::size_t limit = PTRDIFF_MAX;
    if (count > limit / element_bytes) {
        raise(ErrorCode::size_overflow, operation, caller,
              fmt::format("the size of {} elements of {} bytes does not fit into 63 bits", count, element_bytes),
              static_cast<std::int64_t>(count) < 0 ? negative_hint(count)
                                                   : "compute the count in std::size_t or std::int64_t from the start");
    }
    return count * element_bytes;
}

std::string negative_hint(std::size_t number)
{
    const auto as_signed = static_cast<std::int64_t>(number);
    return as_signed < 0 ? fmt::format("was it {}, converted to an unsigned type?", as_signed) : std::string();
}

void ElementCount::raise_negative(std::string_view operation, const std::source_location& caller) const
{
    raise(ErrorCode::invalid_argument, operation, caller,
          fmt::format("a buffer cannot have {} elements", static_cast<std::int64_t>(count_)),
          "0 or more. A product of two ints may have overflowed: multiply as std::int64_t");
}

void raise_index(std::string_view operation, ElementCount index, std::size_t size, const std::source_location& caller)
{
    const std::string which = index.is_negative() ? fmt::format("{}", static_cast<std::int64_t>(index.wrapped()))
                                                  : fmt::format("{}", index.wrapped());
    raise(ErrorCode::out_of_range, operation, caller,
          fmt::format("index {} is out of range for {} elements", which, size),
          size == 0 ? "check first that there are elements" : fmt::format("an index from 0 to {}", size - 1));
}

DeviceMemory::DeviceMemory(std::string_view operation, StreamRef stream, ElementCount count, std::size_t element_bytes,
                           Allocation allocation, MemoryResourceRef resource, const std::source_location& caller)
    : size_(count.require(operation, caller)), stream_(stream.get()), device_(stream.device())
{
    const std::size_t bytes = require_byte_count(operation, size_, element_bytes, caller);
    const Device device = device_of_ordinal(device_, operation, caller);
    memory_.allocation = resolve(allocation, resource, device.properties(), operation, caller);
    memory_.resource = resource;
    if (bytes != 0) {
        const CurrentDevice current(device_, operation, caller);
        if (memory_.allocation == Allocation::plain) {
            require_not_capturing(operation, stream, "cudaMalloc", caller);
        }
        allocated_in_capture_ = memory_.allocation != Allocation::plain && stream.is_capturing();
        memory_ = allocate_on(stream, bytes, memory_.allocation, resource, "", operation, caller);
        must_be_freed_ = true;
    }
    // Last, because a constructor that throws runs no destructor.
    state_ = stream.state();
    retain(state_);
}

DeviceMemory DeviceMemory::adopt(StreamRef stream, ElementCount count, std::size_t element_bytes, void* data,
                                 Allocation allocation, MemoryResourceRef resource, const std::source_location& caller)
{
    constexpr std::string_view operation = "DeviceBuffer::adopt";
    const std::size_t size = count.require(operation, caller);
    const std::size_t bytes = require_byte_count(operation, size, element_bytes, caller);
    if (allocation == Allocation::automatic) {
        raise(ErrorCode::invalid_argument, operation, caller,
              "Allocation::automatic does not say how to free the memory",
              "Allocation::pool for memory from cudaMallocAsync, Allocation::plain for memory from cudaMalloc");
    }
    if (allocation == Allocation::resource && !resource) {
        raise(ErrorCode::invalid_argument, operation, caller, "Allocation::resource was passed without a resource",
              "set RawAllocation::resource");
    }
    if (size != 0) {
        if (allocation != Allocation::resource) {
            require_not_pinned(operation, data, caller);
        }
        require_same_device(operation, caller, "the stream", stream.device(), "the memory",
                            device_of_pointer(data, operation, caller));
        require_origin(operation, data, allocation, caller);
    }
    DeviceMemory memory;
    memory.memory_ = {data, bytes, allocation, resource};
    memory.size_ = size;
    memory.stream_ = stream.get();
    memory.device_ = stream.device();
    memory.must_be_freed_ = data != nullptr || allocation == Allocation::resource;
    memory.state_ = stream.state();
    retain(memory.state_);
    return memory;
}

void DeviceMemory::swap(DeviceMemory& other) noexcept
{
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    std::swap(stream_, other.stream_);
    std::swap(state_, other.state_);
    std::swap(device_, other.device_);
    std::swap(must_be_freed_, other.must_be_freed_);
    std::swap(allocated_in_capture_, other.allocated_in_capture_);
}

void DeviceMemory::release() noexcept
{
    must_be_freed_ = false;
    const DeviceMemory empty(std::move(*this));
}

DeviceMemory::~DeviceMemory()
{
    if (must_be_freed_) {
        free();
    }
    detail::release(state_);
}

void DeviceMemory::free() noexcept
{
    const DestructorsDevice current(device_);
    if (allocated_in_capture_ || state_ == nullptr || !is_capturing(stream_) || !defer()) {
        free_on(stream_, memory_);
    }
}

bool DeviceMemory::defer() const noexcept
{
    try {
        defer_free(*state_, memory_);
        return true;
    } catch (...) {
        return false;
    }
}

void DeviceMemory::raise_empty(std::string_view operation, const std::source_location& caller) const
{
    raise(ErrorCode::empty_handle, operation, caller, "the buffer was moved from, released or never given memory",
          "use the object that it was moved to");
}

void DeviceMemory::set_home(StreamRef home, const std::source_location& caller)
{
    constexpr std::string_view operation = "DeviceBuffer::set_home";
    const StreamRef old = this->home(operation, caller);
    require_same_device(operation, caller, "the stream", home.device(), "the buffer", device_);
    require_not_capturing(operation, old, "changing a buffer's home stream", caller);
    require_not_capturing(operation, home, "changing a buffer's home stream", caller);
    if (must_be_freed_ && memory_.allocation == Allocation::resource && !memory_.resource.frees_on_stream()) {
        raise(ErrorCode::invalid_argument, operation, caller,
              "the buffer's memory resource can free only on the stream that it allocated on",
              "keep the home stream and call used_on() for other streams");
    }
    if (home == old) {
        return;
    }
    wait_for_stream(home, old, operation, caller);
    retain(home.state());
    detail::release(std::exchange(state_, home.state()));
    stream_ = home.get();
}

void copy_async(std::string_view operation, StreamRef stream, const CopyEnd& source, const CopyEnd& target,
                std::size_t count, std::size_t element_bytes, const std::source_location& caller)
{
    for (const CopyEnd* end : {&source, &target}) {
        if (end->offset > end->size || count > end->size - end->offset) {
            raise(ErrorCode::out_of_range, operation, caller,
                  fmt::format("{} elements from element {} on do not fit into {}, which has {} elements", count,
                              end->offset, end->name, end->size),
                  end->offset <= end->size
                      ? fmt::format("at most {} elements from element {} on", end->size - end->offset, end->offset)
                  : static_cast<std::int64_t>(end->offset) < 0 ? negative_hint(end->offset)
                                                               : fmt::format("an offset of at most {}", end->size));
        }
    }
    // The buffer whose member was called is one end, and must be on the stream's device. The other end may be on
    // another device; that is a peer copy.
    const CopyEnd& own = target.device >= 0 ? target : source;
    require_same_device(operation, caller, "the stream", stream.device(), own.name, own.device);
    if (count == 0) {
        return;
    }
    const CurrentDevice current(stream.device(), operation, caller);
    // CUDA deduces the kind of copy: it knows where every address is, pageable memory included.
    const auto* from = static_cast<const std::byte*>(source.data) + source.offset * element_bytes;
    const auto* to = static_cast<const std::byte*>(target.data) + target.offset * element_bytes;
    check(cudaMemcpyAsync(const_cast<std::byte*>(to), from, count * element_bytes, cudaMemcpyDefault, stream.get()),
          "cudaMemcpyAsync", operation, caller);
}

void copy_blocking(std::string_view operation, StreamRef stream, const CopyEnd& source, const CopyEnd& target,
                   std::size_t count, std::size_t element_bytes, const std::source_location& caller)
{
    require_not_capturing(operation, stream, "a blocking copy", caller);
    copy_async(operation, stream, source, target, count, element_bytes, caller);
    synchronize_stream(stream, operation, caller);
}

void fill_async(StreamRef stream, void* data, std::size_t count, const void* value, std::size_t value_bytes, int device,
                const std::source_location& caller)
{
    require_same_device("DeviceBuffer::fill", caller, "the stream", stream.device(), "the buffer", device);
    const CurrentDevice current(stream.device(), "DeviceBuffer::fill", caller);
    check(kernels::fill(data, count, value, value_bytes, stream.get()), "fill kernel", "DeviceBuffer::fill", caller);
}

void order_after(std::string_view operation, StreamRef home, StreamRef user, const std::source_location& caller)
{
    if (home == user) {
        return;
    }
    wait_for_stream(home, user, operation, caller);
}

}  // namespace tessera::detail
