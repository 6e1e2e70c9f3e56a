// There is no instruction with so large a K.
// expect: "mma.sp multiplies 16 rows of a sparse A: K is 16 or 32 for f16 and bf16"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned k = 64;
#else
constexpr unsigned k = 32;
#endif

__device__ unsigned word(const SparseFragmentA<f16, 16, k>& a) { return a.words[0]; }
