#include "tessera/device_buffer.hpp"

#include <fmt/format.h>

#include "kernels/common/fill.hpp"
#include "memory_size.hpp"

namespace tessera::detail {
namespace {

Allocation resolve(Allocation wanted, const DeviceProperties& properties, const std::source_location& caller)
{
    if (wanted == Allocation::automatic) {
        return properties.has_memory_pools ? Allocation::pool : Allocation::plain;
    }
    if (wanted == Allocation::pool && !properties.has_memory_pools) {
        raise(ErrorCode::unsupported_device, "DeviceBuffer", caller,
              fmt::format("{} has no memory pools", properties.name), "Allocation::plain or Allocation::automatic");
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

/// Kernels can reach page-locked host memory, but cudaFree does not free it.
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

}  // namespace

std::size_t require_byte_count(std::string_view operation, std::size_t count, std::size_t element_bytes,
                               const std::source_location& caller)
{
    constexpr std::size_t limit = PTRDIFF_MAX;
    if (count > limit / element_bytes) {
        raise(ErrorCode::size_overflow, operation, caller,
              fmt::format("{} elements of {} bytes are more bytes than 63 bits can count", count, element_bytes));
    }
    return count * element_bytes;
}

DeviceMemory::DeviceMemory(StreamRef stream, std::size_t count, std::size_t element_bytes, Allocation allocation,
                           const std::source_location& caller)
    : size_(count), stream_(stream.get()), device_(stream.device())
{
    const std::size_t bytes = require_byte_count("DeviceBuffer", count, element_bytes, caller);
    const Device device(device_, caller);
    allocation_ = resolve(allocation, device.properties(), caller);
    if (bytes != 0) {
        const CurrentDevice current(device_, "DeviceBuffer", caller);
        if (allocation_ == Allocation::plain) {
            require_not_capturing("DeviceBuffer", stream, "cudaMalloc", caller);
        }
        allocated_in_capture_ = allocation_ == Allocation::pool && stream.is_capturing();
        const cudaError_t status =
            allocation_ == Allocation::pool ? cudaMallocAsync(&data_, bytes, stream_) : cudaMalloc(&data_, bytes);
        if (status != cudaSuccess) {
            data_ = nullptr;
            raise_cuda(status, allocation_ == Allocation::pool ? "cudaMallocAsync" : "cudaMalloc", "DeviceBuffer",
                       caller, fmt::format("while allocating {} bytes on device {}", bytes, device_));
        }
    }
    // Last, because a constructor that throws runs no destructor.
    state_ = stream.state();
    retain(state_);
}

DeviceMemory DeviceMemory::adopt(StreamRef stream, void* data, std::size_t count, std::size_t element_bytes,
                                 Allocation allocation, const std::source_location& caller)
{
    constexpr std::string_view operation = "DeviceBuffer::adopt";
    static_cast<void>(require_byte_count(operation, count, element_bytes, caller));
    if (allocation == Allocation::automatic) {
        raise(ErrorCode::invalid_argument, operation, caller, "how the memory must be freed is not said",
              "Allocation::pool for memory from cudaMallocAsync, Allocation::plain for memory from cudaMalloc");
    }
    if (count != 0) {
        require_not_pinned(operation, data, caller);
        require_same_device(operation, caller, "the stream", stream.device(), "the memory",
                            device_of_pointer(data, operation, caller));
    }
    DeviceMemory memory;
    memory.data_ = data;
    memory.size_ = count;
    memory.stream_ = stream.get();
    memory.device_ = stream.device();
    memory.allocation_ = allocation;
    memory.state_ = stream.state();
    retain(memory.state_);
    return memory;
}

void DeviceMemory::swap(DeviceMemory& other) noexcept
{
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(stream_, other.stream_);
    std::swap(state_, other.state_);
    std::swap(device_, other.device_);
    std::swap(allocation_, other.allocation_);
    std::swap(allocated_in_capture_, other.allocated_in_capture_);
}

void* DeviceMemory::release() noexcept
{
    void* const data = std::exchange(data_, nullptr);
    detail::release(std::exchange(state_, nullptr));
    size_ = 0;
    stream_ = nullptr;
    device_ = -1;
    return data;
}

DeviceMemory::~DeviceMemory()
{
    if (data_ != nullptr) {
        free();
    }
    detail::release(state_);
}

void DeviceMemory::free() noexcept
{
    int previous = -1;
    drop(cudaGetDevice(&previous), "cudaGetDevice");
    const bool switch_device = previous != device_;
    if (switch_device) {
        drop(cudaSetDevice(device_), "cudaSetDevice");
    }
    if (allocated_in_capture_ || state_ == nullptr || !is_capturing(stream_) || !defer()) {
        free_on(stream_, data_, allocation_ == Allocation::pool);
    }
    if (switch_device && previous >= 0) {
        drop(cudaSetDevice(previous), "cudaSetDevice");
    }
}

bool DeviceMemory::defer() const noexcept
{
    try {
        defer_free(*state_, data_, allocation_ == Allocation::pool);
        return true;
    } catch (...) {
        return false;
    }
}

StreamRef DeviceMemory::home(std::string_view operation, const std::source_location& caller) const
{
    if (device_ < 0) {
        raise(ErrorCode::empty_handle, operation, caller, "the buffer was moved from, released or never given memory",
              "use the object that it was moved to");
    }
    return {known_device, stream_, device_, state_};
}

void copy_async(std::string_view operation, StreamRef stream, const CopyEnd& source, const CopyEnd& target,
                std::size_t count, std::size_t element_bytes, const std::source_location& caller)
{
    for (const CopyEnd* end : {&source, &target}) {
        if (end->offset > end->size || count > end->size - end->offset) {
            raise(ErrorCode::out_of_range, operation, caller,
                  fmt::format("{} elements from element {} on leave {} of {} elements", count, end->offset, end->name,
                              end->size));
        }
    }
    // The buffer whose member was called is one end, and it must be of the stream's device. The other end may be of
    // another device: that is a peer copy.
    const CopyEnd& own = target.device >= 0 ? target : source;
    require_same_device(operation, caller, "the stream", stream.device(), own.name, own.device);
    if (count == 0) {
        return;
    }
    const CurrentDevice current(stream.device(), operation, caller);
    // The kind is left to CUDA, which knows of every address where it is. It also knows pageable memory.
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
    stream.synchronize(caller);
}

void fill_async(StreamRef stream, void* data, std::size_t count, const void* value, std::size_t value_bytes, int device,
                const std::source_location& caller)
{
    require_same_device("DeviceBuffer::fill", caller, "the stream", stream.device(), "the buffer", device);
    const CurrentDevice current(stream.device(), "DeviceBuffer::fill", caller);
    check(kernels::fill(data, count, value, value_bytes, stream.get()), "fill kernel", "DeviceBuffer::fill", caller);
}

void order_after(StreamRef home, StreamRef user, const std::source_location& caller)
{
    if (home == user) {
        return;
    }
    home.wait(user, caller);
}

}  // namespace tessera::detail
