/// Compiles the SIMT ladder: each rung for each input type.

#include "simt_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "simt_config.hpp"
#include "simt_gemm.cuh"

namespace tessera::kernels {

namespace {

template <class Element>
SimtKernel naive_kernel()
{
    return {.function = reinterpret_cast<const void*>(&naive_gemm<Element>),
            .block_m = naive_block,
            .block_n = naive_block,
            .block_k = 1,
            .threads = naive_block * naive_block,
            .shared_bytes = 0,
            .required_alignment = sizeof(Element)};
}

/// A rung that is named after its vectors does not run where it could not load any; the kernel itself would take
/// scalars.
enum class Alignment : std::uint8_t { element, chunk };

template <class Rung, class Element>
SimtKernel staged_kernel(Alignment alignment)
{
    constexpr const SimtConfig& config = Rung::config;
    return {.function = reinterpret_cast<const void*>(&staged_gemm<Rung, Element>),
            .block_m = config.block_m,
            .block_n = config.block_n,
            .block_k = config.block_k,
            .threads = config.threads(),
            .shared_bytes = 0,  // static: all stages fit into the 48 KiB that need no opting in
            .required_alignment = (alignment == Alignment::chunk ? config.chunk : 1) * sizeof(Element)};
}

template <class Element>
SimtKernel kernel_of(SimtRung rung, SimtTile tile)
{
    switch (rung) {
        case SimtRung::naive: return naive_kernel<Element>();
        case SimtRung::tiled: return staged_kernel<Tiled, Element>(Alignment::element);
        case SimtRung::vectorized: return staged_kernel<Vectorized, Element>(Alignment::chunk);
        case SimtRung::coarsened: return staged_kernel<Coarsened, Element>(Alignment::chunk);
        case SimtRung::register_blocked: break;
    }
    switch (tile) {
        case SimtTile::medium: return staged_kernel<RegisterBlockedMedium, Element>(Alignment::element);
        case SimtTile::small: return staged_kernel<RegisterBlockedSmall, Element>(Alignment::element);
        case SimtTile::large: break;
    }
    return staged_kernel<RegisterBlockedLarge, Element>(Alignment::element);
}

}  // namespace

SimtKernel simt_kernel(SimtRung rung, ElementType input, SimtTile tile)
{
    switch (input) {
        case ElementType::f16: return kernel_of<f16>(rung, tile);
        case ElementType::bf16: return kernel_of<bf16>(rung, tile);
        case ElementType::f32: break;
    }
    return kernel_of<f32>(rung, tile);
}

SimtTile choose_simt_tile(std::int64_t m, std::int64_t n, std::int64_t batches, int multiprocessors)
{
    // The busiest multiprocessor's share of outputs, weighted with what an output costs in a smaller tile, which loads
    // its operands more often. Weights from 4096 x 4096 x 4096 on an H200.
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
        const double ctas = static_cast<double>(tiles(m, config.block_m)) * tiles(n, config.block_n) * batches;
        return std::ceil(ctas / multiprocessors) * config.block_m * config.block_n * candidate.cost_per_output;
    };
    return std::ranges::min_element(candidates, {}, cost)->tile;  // the first of equals: the largest
}

}  // namespace tessera::kernels
