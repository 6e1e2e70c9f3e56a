/// Instantiates the SIMT kernels for 8-bit inputs, also mixed: the simplest rung and the fastest. The rungs between
/// only explain the ladder, and would make the library half as large again.

#include "simt_table.cuh"

namespace tessera::kernels::detail {

template <>
SimtKernel typed_simt_kernel<AnyFloat8>(SimtRung rung, SimtOrders orders, SimtTile tile)
{
    return rung == SimtRung::naive ? naive_kernel<AnyFloat8>() : register_blocked_kernel<AnyFloat8>(orders, tile);
}

}  // namespace tessera::kernels::detail
