/// Instantiates the Hopper kernels for f8e4m3 and f8e5m2.

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

template HopperKernel hopper_kernel<Tile128x256, 1>();
template HopperKernel hopper_kernel<Tile256x128, 1>();
template HopperKernel hopper_kernel<PingPong128x168, 1>();
template HopperKernel hopper_kernel<Tile128x128, 1>();
template HopperKernel hopper_kernel<PingPong128x128, 1>();
template HopperKernel hopper_kernel<Tile128x64, 1>();
template HopperKernel hopper_kernel<Light64x64, 1>();
template HopperKernel hopper_kernel<Light64x16, 1>();

}  // namespace tessera::kernels::detail
