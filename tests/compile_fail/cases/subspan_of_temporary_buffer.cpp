// The memory would be freed before the span is used, also for a const temporary.
// expect: "tessera: subspan() of a temporary DeviceBuffer: its memory would be gone before the span is used"
#include "tessera/device_buffer.hpp"

using namespace tessera;

const DeviceBuffer<float> made(StreamRef stream);

void view(StreamRef stream)
{
#ifdef NEGATIVE
    static_cast<void>(made(stream).subspan(1, 2));
#else
    const auto buffer = made(stream);
    static_cast<void>(buffer.subspan(1, 2));
#endif
}
