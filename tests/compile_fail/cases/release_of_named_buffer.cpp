// Releasing memory empties the buffer; std::move makes that visible.
// expect g++: "passing 'tessera::DeviceBuffer<float>' as 'this' argument discards qualifiers"
// expect clang++: "'this' argument to member function 'release' is an lvalue, but function has rvalue ref-qualifier"
#include "tessera/device_buffer.hpp"

using namespace tessera;

RawAllocation<float> give_away(DeviceBuffer<float>& buffer)
{
#ifdef NEGATIVE
    return buffer.release();
#else
    return std::move(buffer).release();
#endif
}
