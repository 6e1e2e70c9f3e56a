/// Hopper kernels for A and B of f16 or bf16: tiles whose width is no power of two.

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

template HopperKernel hopper_kernel<PingPong128x176, 2>();
template HopperKernel hopper_kernel<PingPong128x112, 2>();
template HopperKernel hopper_kernel<Deep64x112, 2>();

}  // namespace tessera::kernels::detail
