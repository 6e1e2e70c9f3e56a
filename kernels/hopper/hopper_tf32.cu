/// Instantiates the Hopper kernels for tf32.

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

template HopperKernel hopper_kernel<Tile128x256, 4>();
template HopperKernel hopper_kernel<Tile256x128, 4>();
template HopperKernel hopper_kernel<Tile128x128, 4>();
template HopperKernel hopper_kernel<Tile128x64, 4>();
template HopperKernel hopper_kernel<Light64x64, 4>();
template HopperKernel hopper_kernel<Light64x16, 4>();

}  // namespace tessera::kernels::detail
