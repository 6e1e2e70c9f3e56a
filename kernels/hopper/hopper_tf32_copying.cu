/// Instantiates the Hopper kernels for tf32 with the fallback load for operands that TMA cannot address.

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

template HopperKernel hopper_kernel<Copying128x192, 4>();
template HopperKernel hopper_kernel<Copying128x128, 4>();
template HopperKernel hopper_kernel<Copying64x64, 4>();
template HopperKernel hopper_kernel<Copying64x16, 4>();

}  // namespace tessera::kernels::detail
