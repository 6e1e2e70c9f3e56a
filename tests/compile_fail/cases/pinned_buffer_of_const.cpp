// A buffer owns memory and fills it; const belongs to the views of it.
// expect: "PinnedBuffer<T> owns writable memory: write PinnedBuffer<T>, not <const T>"
#include "tessera/pinned_buffer.hpp"

#ifdef NEGATIVE
using Element = const float;
#else
using Element = float;
#endif

std::size_t count(const tessera::PinnedBuffer<Element>& buffer) { return buffer.size(); }
