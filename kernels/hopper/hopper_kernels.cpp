/// Host side of the Hopper kernels: the tables of configurations, and stubs for a build without these kernels.

#include "hopper_kernels.hpp"

#include <array>

#include "hopper_repack.hpp"
#include "hopper_table.hpp"

namespace tessera::kernels {

namespace {

template <int ElementBytes, class... Configs>
std::span<const HopperKernel> table_of()
{
    static const std::array table{
        detail::hopper_kernel<Configs, ElementBytes>()..., detail::hopper_kernel<Copying128x192, ElementBytes>(),
        detail::hopper_kernel<Copying128x128, ElementBytes>(), detail::hopper_kernel<Copying64x64, ElementBytes>(),
        detail::hopper_kernel<Copying64x16, ElementBytes>()};
    return table;
}

}  // namespace

std::span<const HopperKernel> hopper_kernels([[maybe_unused]] std::size_t element_bytes)
{
#ifdef TESSERA_HAS_HOPPER_KERNELS
    switch (element_bytes) {
        case 1:
            return table_of<1, Tile128x256, Tile256x128, PingPong128x168, Tile128x128, PingPong128x128, Tile128x64,
                            Light64x64, Light64x16>();
        case 2:
            return table_of<2, Tile128x256, Tile128x192, PingPong128x168, Tile128x144, Tile128x128, PingPong128x128,
                            PingPong64x256, PingPong64x192, PingPong64x128, Tile128x80, Tile128x72, Tile128x64,
                            Alternating64x64, Alternating64x32, Tile64x112, Tile64x96, Light64x64, Light64x32,
                            Light64x16>();
        case 4: return table_of<4, Tile128x256, Tile256x128, Tile128x128, Tile128x64, Light64x64, Light64x16>();
        default: break;
    }
#endif
    return {};
}

#ifndef TESSERA_HAS_HOPPER_KERNELS
cudaError_t repack(std::span<const Repacking>, std::size_t, cudaStream_t) { return cudaErrorNoKernelImageForDevice; }
#endif

}  // namespace tessera::kernels
