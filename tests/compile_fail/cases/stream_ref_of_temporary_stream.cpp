// The stream would be destroyed before it is used.
// expect: "tessera: a temporary Stream would be gone before it is used: give the Stream a name"
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
