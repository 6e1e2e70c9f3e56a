// With K = 16 the instruction would take half of the codes, from other lanes.
// expect: "the metadata of a sparse A is a SparseMetadata of its element type and K"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned k = 16;
#else
constexpr unsigned k = 32;
#endif

__device__ void multiply(FragmentC<float, 16, 8>& c, const SparseFragmentA<bf16, 16, 32>& a,
                         const SparseMetadata<bf16, k>& metadata, const FragmentB<bf16, 8, 32>& b)
{
    mma(c, a, metadata, b);
}
