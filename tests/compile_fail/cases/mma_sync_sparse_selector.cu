// Two instructions with K = 32 share a word: there is no third one.
// expect: "the selector of metadata is less than 4 for f16 and bf16 with K = 16 and tf32 with K = 8, less than 2"
#include "tessera/device/mma_sync_sparse.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr unsigned selector = 2;
#else
constexpr unsigned selector = 1;
#endif

__device__ unsigned word(const SparseMetadata<f16, 32, selector>& metadata) { return metadata.word; }
