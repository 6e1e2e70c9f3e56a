// There is no instruction of bf16 with K = 32.
// expect: "K is 8 or 16 for f16, 16 for bf16, 8 for tf32, 32 for f8e4m3 and f8e5m2"
#include "tessera/device/mma_sync.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned k = 32;
#else
constexpr unsigned k = 16;
#endif

__device__ unsigned first_word(const FragmentA<bf16, 16, k>& a) { return a.words[0]; }
