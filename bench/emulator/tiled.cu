// The SDK's `tiled` rung for row-major f32, for the emulated device.

#include "kernels/simt/simt_config.hpp"
#include "kernels/simt/simt_gemm.cuh"

namespace tessera::kernels {

template __global__ void staged_gemm<Tiled, f32, true, false, false>(const __grid_constant__ GemmArguments);

}  // namespace tessera::kernels
