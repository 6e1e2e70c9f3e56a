// The stream would be gone before it is used.
// expect g++: "use of deleted function 'tessera::StreamRef::StreamRef(const tessera::Stream&&, std::source_location)'"
// expect clang++: "invokes a deleted function"
#include "tessera/stream.hpp"

using namespace tessera;

void enqueue(StreamRef stream);

void run()
{
#ifdef NEGATIVE
    const StreamRef stream = Stream();
#else
    const Stream owner;
    const StreamRef stream = owner;
#endif
    enqueue(stream);
}
