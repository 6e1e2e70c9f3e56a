/// Instantiates the mma.sync kernels for f16 inputs with sums in f16.

#include "mma_table.cuh"

namespace tessera::kernels::detail {

std::span<const MmaKernel> mma_table_of_f16_sums()
{
    static const MmaKernel table[]{any_order_mma_kernel<Mma128x128F16Sums, f16, f16>(),
                                   any_order_mma_kernel<Mma64x128F16Sums, f16, f16>(),
                                   any_order_mma_kernel<Mma64x64F16Sums, f16, f16>()};
    return table;
}

}  // namespace tessera::kernels::detail
