/// Instantiates the Hopper kernels for f16 and bf16: tiles that are nearly square, and ping-pong.

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

template HopperKernel hopper_kernel<Tile128x144, 2>();
template HopperKernel hopper_kernel<Tile128x128, 2>();
template HopperKernel hopper_kernel<PingPong128x128, 2>();
template HopperKernel hopper_kernel<PingPong64x256, 2>();
template HopperKernel hopper_kernel<PingPong64x192, 2>();

}  // namespace tessera::kernels::detail
