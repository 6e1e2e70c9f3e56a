// The resource would be destroyed before its memory is freed.
// expect: "tessera: a MemoryResourceRef of a temporary resource would outlive it"
#include "tessera/device_buffer.hpp"

using namespace tessera;

struct Resource {
    void* allocate_async(std::size_t bytes, std::size_t alignment, cudaStream_t stream);
    void deallocate_async(void* memory, std::size_t bytes, std::size_t alignment, cudaStream_t stream);
};

std::size_t make(StreamRef stream)
{
#ifdef NEGATIVE
    const DeviceBuffer<float> buffer(stream, 8, Resource());
#else
    Resource resource;
    const DeviceBuffer<float> buffer(stream, 8, resource);
#endif
    return buffer.size();
}
