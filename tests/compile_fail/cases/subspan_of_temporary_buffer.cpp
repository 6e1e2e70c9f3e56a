// The memory would be gone before the span is used, also that of a const temporary.
// expect g++: "use of deleted function 'void tessera::DeviceBuffer<T>::subspan(std::size_t, std::size_t) const &&"
// expect clang++: "call to deleted member function 'subspan'"
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
