/// Instantiates the Hopper kernels for f16 and bf16 with the fallback load for operands that TMA cannot address.

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

template HopperKernel hopper_kernel<Copying128x192, 2>();
template HopperKernel hopper_kernel<Copying128x128, 2>();
template HopperKernel hopper_kernel<Copying64x64, 2>();
template HopperKernel hopper_kernel<Copying64x16, 2>();

}  // namespace tessera::kernels::detail
