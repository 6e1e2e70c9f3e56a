/// Instantiates the mma.sync kernels for tf32 inputs.

#include "mma_table.cuh"

namespace tessera::kernels::detail {

template <>
std::span<const MmaKernel> mma_table<tf32, tf32>()
{
    static const MmaKernel table[]{mma_kernel<Mma256x128, tf32, tf32>(), mma_kernel<Mma128x128, tf32, tf32>(),
                                   mma_kernel<Mma64x64, tf32, tf32>(), mma_kernel<Mma16x64, tf32, tf32>(),
                                   mma_kernel<Mma64x64Any, tf32, tf32>()};
    return table;
}

}  // namespace tessera::kernels::detail
