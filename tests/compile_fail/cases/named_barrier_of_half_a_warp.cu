// A warp arrives as a whole: the barrier would complete too early or never.
// expect: "a named barrier takes whole warps: 32 to 1024 threads"
#include "tessera/device/warp.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned threads = 48;
#else
constexpr unsigned threads = 64;
#endif

__device__ void meet() { NamedBarrier<threads>(1).synchronize(); }
