/// Instantiates the mma.sync kernels for f16 inputs.

#include "mma_table.cuh"

namespace tessera::kernels::detail {

template <>
std::span<const MmaKernel> mma_table<f16, f16>()
{
    static const MmaKernel table[]{mma_kernel<Mma256x128, f16, f16>(),     mma_kernel<Mma128x128, f16, f16>(),
                                   mma_kernel<Mma128x128Wide, f16, f16>(), mma_kernel<Mma64x128, f16, f16>(),
                                   mma_kernel<Mma64x64, f16, f16>(),       mma_kernel<Mma32x128, f16, f16>(),
                                   mma_kernel<Mma16x64, f16, f16>(),       mma_kernel<Mma64x64Any, f16, f16>()};
    return table;
}

}  // namespace tessera::kernels::detail
