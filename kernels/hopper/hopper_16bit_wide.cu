/// Instantiates the Hopper kernels for f16 and bf16: the widest tiles.

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

template HopperKernel hopper_kernel<Tile128x256, 2>();
template HopperKernel hopper_kernel<Tile128x192, 2>();
template HopperKernel hopper_kernel<PingPong128x168, 2>();

}  // namespace tessera::kernels::detail
