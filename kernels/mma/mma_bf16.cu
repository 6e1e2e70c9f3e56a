/// Instantiates the mma.sync kernels for bf16 inputs.

#include "mma_table.cuh"

namespace tessera::kernels::detail {

template <>
std::span<const MmaKernel> mma_table<bf16, bf16>()
{
    static const MmaKernel table[]{mma_kernel<Mma256x128, bf16, bf16>(),     mma_kernel<Mma128x128, bf16, bf16>(),
                                   mma_kernel<Mma128x128Wide, bf16, bf16>(), mma_kernel<Mma64x64, bf16, bf16>(),
                                   mma_kernel<Mma32x128, bf16, bf16>(),      mma_kernel<Mma16x64, bf16, bf16>(),
                                   mma_kernel<Mma64x64Any, bf16, bf16>()};
    return table;
}

}  // namespace tessera::kernels::detail
