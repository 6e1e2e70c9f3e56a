/// Host side of the SIMT kernels: maps a rung and the input types to a compiled kernel, and chooses a tile.

#include "simt_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "simt_config.hpp"

namespace tessera::kernels {

struct AnyFloat8;

namespace detail {

// Instantiated in simt_f32.cu, simt_f16.cu, simt_bf16.cu and simt_f8.cu.
template <class Element>
SimtKernel typed_simt_kernel(SimtRung rung, SimtOrders orders, SimtTile tile);
extern template SimtKernel typed_simt_kernel<f32>(SimtRung, SimtOrders, SimtTile);
extern template SimtKernel typed_simt_kernel<f16>(SimtRung, SimtOrders, SimtTile);
extern template SimtKernel typed_simt_kernel<bf16>(SimtRung, SimtOrders, SimtTile);
template <>
SimtKernel typed_simt_kernel<AnyFloat8>(SimtRung, SimtOrders, SimtTile);

}  // namespace detail

bool simt_takes(SimtRung rung, InputTypes input)
{
    const bool has_float8 = rung == SimtRung::naive || rung == SimtRung::register_blocked;
    return can_multiply(input) && (has_float8 || !is_float8(input));
}

SimtKernel simt_kernel(SimtRung rung, InputTypes input, SimtTile tile, SimtOrders orders)
{
    switch (input.a) {
        case ElementType::f16: return detail::typed_simt_kernel<f16>(rung, orders, tile);
        case ElementType::bf16: return detail::typed_simt_kernel<bf16>(rung, orders, tile);
        case ElementType::f8e4m3:
        case ElementType::f8e5m2: return detail::typed_simt_kernel<AnyFloat8>(rung, orders, tile);
        case ElementType::f32:
        case ElementType::tf32: break;  // a tf32 value is the float with its bits
    }
    return detail::typed_simt_kernel<f32>(rung, orders, tile);
}

SimtTile choose_simt_tile(std::int64_t m, std::int64_t n, std::int64_t batches, int multiprocessors)
{
    // Outputs of the busiest SM, weighted by the cost of an output: smaller tiles load their operands more often. The
    // weights were measured with 4096 x 4096 x 4096 on an H200.
    struct Candidate {
        SimtTile tile;
        const SimtConfig& config;
        double cost_per_output;
    };
    constexpr Candidate candidates[] = {{SimtTile::large, RegisterBlockedLarge::config, 1.0},
                                        {SimtTile::medium, RegisterBlockedMedium::config, 1.1},
                                        {SimtTile::small, RegisterBlockedSmall::config, 1.3}};
    const auto tiles = [](std::int64_t extent, int block) { return extent / block + (extent % block != 0); };
    const auto cost = [&](const Candidate& candidate) {
        const SimtConfig& config = candidate.config;
        const double ctas = static_cast<double>(tiles(m, config.block_m)) *
                            static_cast<double>(tiles(n, config.block_n)) * static_cast<double>(batches);
        return std::ceil(ctas / multiprocessors) * config.block_m * config.block_n * candidate.cost_per_output;
    };
    return std::ranges::min_element(candidates, {}, cost)->tile;  // in a tie the first, which is the largest
}

}  // namespace tessera::kernels
