// Two owners would destroy one stream twice. Many may hold a StreamRef.
// expect g++: "use of deleted function 'tessera::Stream::Stream(const tessera::Stream&)'"
// expect clang++: "call to deleted constructor of 'Stream'"
#include "tessera/stream.hpp"

using namespace tessera;

#ifdef NEGATIVE
Stream second(const Stream& stream) { return stream; }
#else
StreamRef second(const Stream& stream) { return stream; }
#endif
