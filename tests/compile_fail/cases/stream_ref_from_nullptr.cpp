// nullptr would silently be the legacy default stream, which serializes with all others.
// expect: "tessera: 0 or nullptr would be the legacy default stream, which all blocking streams wait for"
#include "tessera/stream.hpp"

using namespace tessera;

#ifdef NEGATIVE
StreamRef stream_of(const Device&) { return nullptr; }
#else
StreamRef stream_of(const Device& device) { return device.default_stream(); }
#endif
