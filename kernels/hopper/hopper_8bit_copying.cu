/// Hopper kernels for A and B of f8e4m3 or f8e5m2, where TMA cannot address one of them.

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

template HopperKernel hopper_kernel<Copying128x192, 1>();
template HopperKernel hopper_kernel<Copying128x128, 1>();
template HopperKernel hopper_kernel<Copying64x64, 1>();
template HopperKernel hopper_kernel<Copying64x16, 1>();

}  // namespace tessera::kernels::detail
