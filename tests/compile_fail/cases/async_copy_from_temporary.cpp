// A temporary would make the "asynchronous" copy block at once, in the destructor that waits for it.
// expect g++: "cannot bind non-const lvalue reference of type 'tessera::PinnedBuffer<float>&' to an rvalue"
// expect clang++: "no matching member function for call to 'copy_from_async'"
#include "tessera/device_buffer.hpp"

using namespace tessera;

void upload(DeviceBuffer<float>& target, StreamRef stream)
{
#ifdef NEGATIVE
    target.copy_from_async(stream, PinnedBuffer<float>(6));
#else
    PinnedBuffer<float> source(6);
    target.copy_from_async(stream, source);
#endif
}
