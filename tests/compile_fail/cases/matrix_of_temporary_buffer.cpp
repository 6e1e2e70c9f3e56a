// The memory would be freed before the view is used.
// expect: "tessera: matrix() of a temporary DeviceBuffer: its memory would be gone before the view is used"
#include "tessera/device_buffer.hpp"

using namespace tessera;

void view(StreamRef stream)
{
#ifdef NEGATIVE
    static_cast<void>(DeviceBuffer<float>(stream, 6).matrix(2, 3));
#else
    DeviceBuffer<float> buffer(stream, 6);
    static_cast<void>(buffer.matrix(2, 3));
#endif
}
