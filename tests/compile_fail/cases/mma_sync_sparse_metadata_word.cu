// A bare word does not say which lanes and which types it is for.
// expect: "the metadata of a sparse A is a SparseMetadata of its element type and K"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Metadata = std::uint32_t;
#else
using Metadata = SparseMetadata<f16, 32>;
#endif

__device__ void multiply(FragmentC<float, 16, 8>& c, const SparseFragmentA<f16, 16, 32>& a, const Metadata& metadata,
                         const FragmentB<f16, 8, 32>& b)
{
    mma(c, a, metadata, b);
}
