// A warp arrives as a whole: such a barrier would never be complete, or too early.
// expect: "a named barrier takes whole warps: 32 to 1024 threads"
#include "tessera/device/warp.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned threads = 48;
#else
constexpr unsigned threads = 64;
#endif

__device__ void meet() { NamedBarrier<threads>(1).synchronize(); }
