// The memory would be freed before the span is used.
// expect: "tessera: span() of a temporary PinnedBuffer: its memory would be gone before the span is used"
#include "tessera/pinned_buffer.hpp"

using namespace tessera;

void view()
{
#ifdef NEGATIVE
    static_cast<void>(PinnedBuffer<float>(6).span());
#else
    PinnedBuffer<float> buffer(6);
    static_cast<void>(buffer.span());
#endif
}
