/// Instantiates the Hopper kernels for f8e4m3 and f8e5m2 with the fallback load for operands that TMA cannot address.

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

template HopperKernel hopper_kernel<Copying128x192, 1>();
template HopperKernel hopper_kernel<Copying128x128, 1>();
template HopperKernel hopper_kernel<Copying64x64, 1>();
template HopperKernel hopper_kernel<Copying64x16, 1>();

}  // namespace tessera::kernels::detail
