/// Instantiates the Hopper kernels for f16 and bf16: small tiles.

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

template HopperKernel hopper_kernel<PingPong64x128, 2>();
template HopperKernel hopper_kernel<Tile128x80, 2>();
template HopperKernel hopper_kernel<Tile128x72, 2>();
template HopperKernel hopper_kernel<Tile128x64, 2>();
template HopperKernel hopper_kernel<Alternating64x64, 2>();
template HopperKernel hopper_kernel<Alternating64x32, 2>();
template HopperKernel hopper_kernel<Tile64x112, 2>();
template HopperKernel hopper_kernel<Tile64x96, 2>();
template HopperKernel hopper_kernel<Light64x64, 2>();
template HopperKernel hopper_kernel<Light64x32, 2>();
template HopperKernel hopper_kernel<Light64x16, 2>();

}  // namespace tessera::kernels::detail
