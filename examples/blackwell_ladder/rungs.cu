// Instantiates the library's kernel for every rung.

#include "rungs.hpp"

#include <array>

#include "kernels/blackwell/blackwell_table.cuh"

namespace blackwell_ladder {
namespace {

template <class... Rungs>
std::span<const tessera::kernels::BlackwellKernel> table_of()
{
    static_assert((is_valid(Rungs::config) && ...), "a rung does not fit into shared or tensor memory");
    static const std::array table{tessera::kernels::detail::blackwell_kernel<Rungs, tessera::MmaKind::f16>()...};
    return table;
}

}  // namespace

std::span<const tessera::kernels::BlackwellKernel> rungs()
{
    return table_of<Tiled, Swizzled, Pipelined, WarpSpecialized, Persistent, Clc, ClcMulticast, CtaPair, CtaPair256,
                    CtaPair512>();
}

}  // namespace blackwell_ladder
