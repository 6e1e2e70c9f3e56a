// Two factors begin at byte 0 or 2 of the word.
// expect: "scale factors begin at a multiple of their number, in a word of 4 bytes"
#include "tessera/device/mma_sync_scaled.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned byte = 3;
#else
constexpr unsigned byte = 2;
#endif

__device__ unsigned word(const ScaleFragmentB<ScaleType::ue8m0, ScaleVector::x2, byte>& scale) { return scale.word; }
