// nullptr would quietly be the legacy default stream, which serializes with all others.
// expect g++: "use of deleted function 'tessera::StreamRef::StreamRef(std::nullptr_t)'"
// expect clang++: "invokes a deleted function"
#include "tessera/stream.hpp"

using namespace tessera;

#ifdef NEGATIVE
StreamRef stream_of(const Device&) { return nullptr; }
#else
StreamRef stream_of(const Device& device) { return device.default_stream(); }
#endif
