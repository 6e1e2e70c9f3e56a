/// The SIMT kernels for 8-bit inputs, mixed ones too: the plainest and the fastest rung. The rungs between, which are
/// steps of an explanation, would add half as much again to the library.

#include "simt_table.cuh"

namespace tessera::kernels::detail {

template <>
SimtKernel typed_simt_kernel<AnyFloat8>(SimtRung rung, SimtOrders orders, SimtTile tile)
{
    return rung == SimtRung::naive ? naive_kernel<AnyFloat8>() : register_blocked_kernel<AnyFloat8>(orders, tile);
}

}  // namespace tessera::kernels::detail
