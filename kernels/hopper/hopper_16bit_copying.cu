/// Hopper kernels for A and B of f16 or bf16, where TMA cannot address one of them.

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

template HopperKernel hopper_kernel<Copying128x192, 2>();
template HopperKernel hopper_kernel<Copying128x128, 2>();
template HopperKernel hopper_kernel<Copying64x64, 2>();
template HopperKernel hopper_kernel<Copying64x16, 2>();

}  // namespace tessera::kernels::detail
