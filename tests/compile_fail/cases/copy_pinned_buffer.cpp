// A copy would hide an allocation of page-locked memory, which is slow.
// expect g++: "use of deleted function 'tessera::PinnedBuffer<T>::PinnedBuffer(const tessera::PinnedBuffer<T>&)"
// expect clang++: "call to deleted constructor of 'PinnedBuffer<float>'"
#include "tessera/pinned_buffer.hpp"

using namespace tessera;

PinnedBuffer<float> handed_on(PinnedBuffer<float>& buffer)
{
#ifdef NEGATIVE
    return buffer;
#else
    return std::move(buffer);
#endif
}
