// The stream would be destroyed before it is used. One sentence says so, also if it is the argument of a buffer.
// expect: "tessera: a temporary Stream would be gone before it is used: give the Stream a name"
#include "tessera/device_buffer.hpp"

using namespace tessera;

std::size_t make()
{
#ifdef NEGATIVE
    const DeviceBuffer<float> buffer(Stream(), 8);
    return buffer.size();
#else
    const Stream stream;
    const DeviceBuffer<float> buffer(stream, 8);
    return buffer.size();
#endif
}
