/// The Hopper kernels for A and B of f16 or bf16.

#include <array>

#include "hopper_table.cuh"

namespace tessera::kernels::detail {

std::span<const HopperKernel> hopper_kernels_16bit()
{
    static const std::array table{
        hopper_kernel<Tile128x256, 2>(),    hopper_kernel<Tile256x128, 2>(),     hopper_kernel<Tile128x192, 2>(),
        hopper_kernel<Tile128x128, 2>(),    hopper_kernel<PingPong128x128, 2>(), hopper_kernel<PingPong64x256, 2>(),
        hopper_kernel<PingPong64x128, 2>(), hopper_kernel<Tile128x64, 2>(),      hopper_kernel<PingPong64x64, 2>(),
        hopper_kernel<Tile128x32, 2>(),     hopper_kernel<Tile128x16, 2>(),
    };
    return table;
}

}  // namespace tessera::kernels::detail
