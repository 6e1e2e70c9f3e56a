/// Host side of the Blackwell kernels: the tables of configurations.

#include "blackwell_kernels.hpp"

#include <array>

#include "blackwell_table.hpp"

namespace tessera::kernels {

#ifdef TESSERA_HAS_BLACKWELL_KERNELS
namespace {

template <MmaKind Kind, class... Configs>
std::span<const BlackwellKernel> table_of()
{
    static const std::array table{detail::blackwell_kernel<Configs, Kind>()...,
                                  detail::blackwell_kernel<Copying128x128, Kind>(),
                                  detail::blackwell_kernel<CopyingPair256x256, Kind>()};
    return table;
}

}  // namespace
#endif

std::span<const BlackwellKernel> blackwell_kernels([[maybe_unused]] std::size_t element_bytes)
{
#ifdef TESSERA_HAS_BLACKWELL_KERNELS
    switch (element_bytes) {
        case 1:
            return table_of<MmaKind::f8f6f4, Tile128x16, Tile128x32, Tile128x64, Tile128x128, Tile128x256, Pair256x128,
                            Pair256x192, Pair256x256, Pair512x256, Quad512x256>();
        case 2:
            return table_of<MmaKind::f16, Tile128x16, Tile128x32, Tile128x64, Tile128x96, Tile128x128, Tile128x192,
                            Tile128x256, Pair256x64, Pair256x96, Pair256x128, Pair256x192, Pair256x256, Pair512x256,
                            Quad512x256>();
        case 4:
            return table_of<MmaKind::tf32, Tile128x32, Tile128x64, Tile128x128, Pair256x128, Pair256x256, Pair512x256,
                            Quad512x256>();
        default: break;
    }
#endif
    return {};
}

bool has_blackwell_code([[maybe_unused]] int compute_capability_major)
{
#ifdef TESSERA_HAS_BLACKWELL_CODE_10
    if (compute_capability_major == 10) {
        return true;
    }
#endif
#ifdef TESSERA_HAS_BLACKWELL_CODE_11
    if (compute_capability_major == 11) {
        return true;
    }
#endif
    return false;
}

}  // namespace tessera::kernels
