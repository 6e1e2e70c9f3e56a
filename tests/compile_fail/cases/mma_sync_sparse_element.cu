// Doubles have no sparse products.
// expect: "mma.sp multiplies 16 rows of a sparse A: K is 16 or 32 for f16 and bf16"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
using T = double;
#else
using T = tf32;
#endif

__device__ unsigned word(const SparseFragmentA<T, 16, 8>& a) { return a.words[0]; }
