/// MemoryResourceRef accepts the memory resources of the installed CCCL. In its own file, because that part of CCCL is
/// opt-in.

#define LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE
#if __has_include(<cuda/memory_resource>)
#include <cuda/memory_resource>
#endif

#include "clean_runtime.hpp"

using namespace tessera;
using tessera::test::CleanRuntime;

#ifdef CCCL_VERSION

namespace {

/// The minimum that CCCL's concepts require; CCCL's own resources are not in every toolkit.
struct Pool {
    int allocations = 0;
    int frees = 0;

    void* on_stream(std::size_t bytes, std::size_t alignment, cuda::stream_ref stream)
    {
        CHECK(alignment == 256);
        void* memory = nullptr;
        CHECK(cudaMallocAsync(&memory, bytes, stream.get()) == cudaSuccess);
        ++allocations;
        return memory;
    }
    void off_stream(void* memory, cuda::stream_ref stream) noexcept
    {
        CHECK(cudaFreeAsync(memory, stream.get()) == cudaSuccess);
        ++frees;
    }
#if CCCL_VERSION >= 3001000  // the stream comes first
    void* allocate_sync(std::size_t, std::size_t) { return nullptr; }
    void deallocate_sync(void*, std::size_t, std::size_t) noexcept {}
    void* allocate(cuda::stream_ref stream, std::size_t bytes, std::size_t alignment)
    {
        return on_stream(bytes, alignment, stream);
    }
    void deallocate(cuda::stream_ref stream, void* memory, std::size_t, std::size_t) noexcept
    {
        off_stream(memory, stream);
    }
#else
    void* allocate(std::size_t, std::size_t) { return nullptr; }
    void deallocate(void*, std::size_t, std::size_t) {}
    void* allocate_async(std::size_t bytes, std::size_t alignment, cuda::stream_ref stream)
    {
        return on_stream(bytes, alignment, stream);
    }
    void deallocate_async(void* memory, std::size_t, std::size_t, cuda::stream_ref stream)
    {
        off_stream(memory, stream);
    }
#endif
    friend bool operator==(const Pool& left, const Pool& right) { return &left == &right; }
    friend bool operator!=(const Pool& left, const Pool& right) { return &left != &right; }
    friend void get_property(const Pool&, cuda::mr::device_accessible) noexcept {}
};

#if CCCL_VERSION >= 3001000
static_assert(cuda::mr::resource_with<Pool, cuda::mr::device_accessible>);
using Reference = cuda::mr::resource_ref<cuda::mr::device_accessible>;
#else
static_assert(cuda::mr::async_resource_with<Pool, cuda::mr::device_accessible>);
using Reference = cuda::mr::async_resource_ref<cuda::mr::device_accessible>;
#endif

}  // namespace

TEST_CASE_FIXTURE(CleanRuntime, "a buffer accepts a CCCL resource, directly and through CCCL's reference")
{
    const Stream stream;
    Pool pool;
    Reference reference = pool;
    {
        const DeviceBuffer<float> first(stream, 10, pool);
        const DeviceBuffer<float> second(stream, 10, reference);
        CHECK(pool.allocations == 2);
    }
    CHECK(pool.frees == 2);
}

#endif
