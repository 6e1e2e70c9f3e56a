#pragma once

/// @file
/// @ingroup host_memory
/// @brief `MemoryResourceRef`: an allocator of device memory that the SDK did not make, for buffers and workspaces.

#include <cuda_runtime_api.h>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "tessera/detail/refused.hpp"

namespace tessera {

class MemoryResourceRef;

/// How device memory is obtained and given back.
enum class Allocation : std::uint8_t {
    automatic,  ///< `pool` if the device has memory pools, otherwise `plain`
    pool,       ///< cudaMallocAsync from the device's current pool; ordered on the stream
    plain,      ///< cudaMalloc; the free waits for the home stream first
    resource,   ///< a `MemoryResourceRef`
};

namespace detail {

template <class Resource>
concept AllocatesByStreamFirst = requires(Resource& resource, cudaStream_t stream, void* memory, std::size_t bytes) {
    { resource.allocate(stream, bytes, bytes) } -> std::convertible_to<void*>;
    resource.deallocate(stream, memory, bytes, bytes);
};

template <class Resource>
concept AllocatesAsync = requires(Resource& resource, cudaStream_t stream, void* memory, std::size_t bytes) {
    { resource.allocate_async(bytes, bytes, stream) } -> std::convertible_to<void*>;
    resource.deallocate_async(memory, bytes, bytes, stream);
};

template <class Resource>
concept AllocatesAsyncUnaligned = requires(Resource& resource, cudaStream_t stream, void* memory, std::size_t bytes) {
    { resource.allocate_async(bytes, stream) } -> std::convertible_to<void*>;
    resource.deallocate_async(memory, bytes, stream);
};

template <class Resource>
concept AllocatesByStreamLast = requires(Resource& resource, cudaStream_t stream, void* memory, std::size_t bytes) {
    { resource.allocate(bytes, stream) } -> std::convertible_to<void*>;
    resource.deallocate(memory, bytes, stream);
};

template <class Resource>
concept AllocatesRaw = requires(Resource& resource, cudaStream_t stream, void* memory, std::size_t bytes) {
    { resource.raw_alloc_with_stream(bytes, stream) } -> std::convertible_to<void*>;
    resource.raw_delete(memory);
};

template <class Resource>
concept AllocatesOnStream =
    !std::same_as<std::remove_cv_t<Resource>, MemoryResourceRef> &&
    (AllocatesByStreamFirst<Resource> || AllocatesAsync<Resource> || AllocatesAsyncUnaligned<Resource> ||
     AllocatesByStreamLast<Resource> || AllocatesRaw<Resource>);

/// True if a free is given the stream that it is ordered after.
template <class Resource>
inline constexpr bool frees_on_stream = AllocatesByStreamFirst<Resource> || AllocatesAsync<Resource> ||
                                        AllocatesAsyncUnaligned<Resource> || AllocatesByStreamLast<Resource>;

template <class Resource>
void* allocate_from(void* context, std::size_t bytes, std::size_t alignment, cudaStream_t stream)
{
    auto& resource = *static_cast<Resource*>(context);
    if constexpr (AllocatesByStreamFirst<Resource>) {
        return resource.allocate(stream, bytes, alignment);
    } else if constexpr (AllocatesAsync<Resource>) {
        return resource.allocate_async(bytes, alignment, stream);
    } else if constexpr (AllocatesAsyncUnaligned<Resource>) {
        return resource.allocate_async(bytes, stream);
    } else if constexpr (AllocatesByStreamLast<Resource>) {
        return resource.allocate(bytes, stream);
    } else {
        return resource.raw_alloc_with_stream(bytes, stream);
    }
}

template <class Resource>
void deallocate_to(void* context, void* memory, std::size_t bytes, std::size_t alignment, cudaStream_t stream)
{
    auto& resource = *static_cast<Resource*>(context);
    if constexpr (AllocatesByStreamFirst<Resource>) {
        resource.deallocate(stream, memory, bytes, alignment);
    } else if constexpr (AllocatesAsync<Resource>) {
        resource.deallocate_async(memory, bytes, alignment, stream);
    } else if constexpr (AllocatesAsyncUnaligned<Resource>) {
        resource.deallocate_async(memory, bytes, stream);
    } else if constexpr (AllocatesByStreamLast<Resource>) {
        resource.deallocate(memory, bytes, stream);
    } else {
        resource.raw_delete(memory);
    }
}

}  // namespace detail

/// Refers to an allocator of device memory that somebody else owns. A small value.
///
/// @code{.cpp}
/// MemoryResourceRef resource(pool);  // an rmm::mr::pool_memory_resource, for example
/// DeviceBuffer<float> activations(stream, 4096, resource);
/// @endcode
///
/// Any object with one of these pairs of functions is a resource. It need not be derived from anything:
///
/// | allocate | free | has it |
/// |---|---|---|
/// | `allocate(stream, bytes, alignment)` | `deallocate(stream, memory, bytes, alignment)` | cuda::mr, RMM |
/// | `allocate_async(bytes, alignment, stream)` | `deallocate_async(memory, bytes, alignment, stream)` | the same |
/// | `allocate_async(bytes, stream)` | `deallocate_async(memory, bytes, stream)` | RMM |
/// | `allocate(bytes, stream)` | `deallocate(memory, bytes, stream)` | RMM |
/// | `raw_alloc_with_stream(bytes, stream)` | `raw_delete(memory)` | PyTorch's CUDA caching allocator |
///
/// So RMM's `*get_current_device_resource()` is a resource, and so is PyTorch's CUDACachingAllocator object. An
/// `rmm::device_async_resource_ref` or `cuda::mr::async_resource_ref` is one, too: that object itself must outlive the
/// memory. `stream` is a cudaStream_t or a type that is made from one (`cuda::stream_ref`, `rmm::cuda_stream_view`).
/// Wrap any other allocator in a pair of functions.
///
/// @par What the resource must do
/// It must return memory of the stream's device, at a multiple of `alignment` bytes (the SDK requests 256), usable by
/// later work of the stream. It is called with the stream's device current, by the thread that makes or destroys the
/// buffer; if buffers are used by several threads, it must be safe to call from them. An exception while it allocates
/// passes through to the caller; one while it frees goes to `dropped_errors()`.
///
/// @par Lifetime
/// The resource must outlive every buffer whose memory came from it, and every graph that was captured with the
/// allocation of one of these buffers in it.
///
/// @par Thread safety
/// A value: threads may use copies of it, or read the same object.
class MemoryResourceRef {
public:
    /// Returns `bytes` at a multiple of `alignment`, usable by later work of `stream`. Returns null or throws if it
    /// cannot.
    using Allocate = void* (*)(void* context, std::size_t bytes, std::size_t alignment, cudaStream_t stream);
    /// Takes back what `Allocate` returned, after all work that is on `stream` by now.
    using Deallocate = void (*)(void* context, void* memory, std::size_t bytes, std::size_t alignment,
                                cudaStream_t stream);

    /// No resource.
    MemoryResourceRef() = default;

    /// Refers to `resource`, which has one of the pairs of functions above and must outlive the memory.
    template <class Resource>
        requires detail::AllocatesOnStream<Resource>
    MemoryResourceRef(Resource& resource) noexcept
        : context_(const_cast<std::remove_const_t<Resource>*>(std::addressof(resource))),
          allocate_(&detail::allocate_from<Resource>),
          deallocate_(&detail::deallocate_to<Resource>),
          frees_on_stream_(detail::frees_on_stream<Resource>)
    {}

    /// Refuses to compile for a temporary resource: it would be gone before its memory.
    template <class Resource>
        requires(!std::is_reference_v<Resource> && detail::AllocatesOnStream<Resource>)
    MemoryResourceRef(Resource&& /*resource*/) noexcept
    {
        static_assert(detail::always_false<Resource>,
                      "tessera: a MemoryResourceRef of a temporary resource would outlive it: give the resource a name "
                      "that lives longer than the memory that comes from it");
    }

    /// Wraps a pair of functions; both are called with `context`.
    MemoryResourceRef(void* context, Allocate allocates, Deallocate deallocates) noexcept
        : context_(context), allocate_(allocates), deallocate_(deallocates)
    {}

    /// Returns false if there is no resource.
    explicit operator bool() const noexcept { return deallocate_ != nullptr; }

    /// Requests memory from the resource. The stream's device must be current.
    void* allocate(std::size_t bytes, std::size_t alignment, cudaStream_t stream) const
    {
        return allocate_(context_, bytes, alignment, stream);
    }
    /// Gives memory back. The owner of a `RawAllocation` with a resource calls this. The stream's device must be
    /// current.
    void deallocate(void* memory, std::size_t bytes, std::size_t alignment, cudaStream_t stream) const
    {
        deallocate_(context_, memory, bytes, alignment, stream);
    }

    /// Returns false if the resource frees in the order of the stream that it allocated on, whatever stream it is given
    /// (PyTorch's caching allocator does). That memory cannot change its home stream.
    bool frees_on_stream() const noexcept { return frees_on_stream_; }

    /// Returns true for the same resource.
    friend bool operator==(const MemoryResourceRef&, const MemoryResourceRef&) = default;

private:
    void* context_ = nullptr;
    Allocate allocate_ = nullptr;
    Deallocate deallocate_ = nullptr;
    bool frees_on_stream_ = true;
};

namespace detail {

/// Device memory and how it is given back. A plain value: only free_on() in owned_memory.hpp frees it.
struct OwnedMemory {
    void* data = nullptr;
    std::size_t bytes = 0;
    Allocation allocation = Allocation::automatic;
    MemoryResourceRef resource = {};  // of Allocation::resource
};

}  // namespace detail

}  // namespace tessera
