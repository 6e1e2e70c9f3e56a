// The memory would be freed before the span is used.
// expect: "tessera: span() of a temporary DeviceBuffer: its memory would be gone before the span is used"
#include "tessera/device_buffer.hpp"

using namespace tessera;

void view(StreamRef stream)
{
#ifdef NEGATIVE
    static_cast<void>(DeviceBuffer<float>(stream, 6).span());
#else
    DeviceBuffer<float> buffer(stream, 6);
    static_cast<void>(buffer.span());
#endif
}
