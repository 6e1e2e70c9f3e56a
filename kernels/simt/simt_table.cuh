#pragma once

/// All rungs of the SIMT kernels for one input type. Each type is instantiated in its own .cu file, so that they
/// compile in parallel.

#include <cstdint>
#include <type_traits>

#include "simt_config.hpp"
#include "simt_gemm.cuh"
#include "simt_kernels.hpp"

namespace tessera::kernels::detail {

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

/// True for the configurations with entry points for operands of whole chunks: those that measurably gain from them.
template <class Rung, class Element>
inline constexpr bool has_whole_chunk_entries =
    std::is_same_v<Element, f32> &&
    (std::is_same_v<Rung, RegisterBlockedLarge> || std::is_same_v<Rung, RegisterBlockedMedium>);

template <class Rung, class Element, bool WholeChunks>
const void* staged_entry(SimtOrders orders)
{
    const auto address = [](auto* kernel) { return reinterpret_cast<const void*>(kernel); };
    if (orders.a_k_contiguous) {
        return orders.b_k_contiguous ? address(&staged_gemm<Rung, Element, true, true, WholeChunks>)
                                     : address(&staged_gemm<Rung, Element, true, false, WholeChunks>);
    }
    return orders.b_k_contiguous ? address(&staged_gemm<Rung, Element, false, true, WholeChunks>)
                                 : address(&staged_gemm<Rung, Element, false, false, WholeChunks>);
}

template <class Rung, class Element>
const void* staged_entry(SimtOrders orders)
{
    if constexpr (has_whole_chunk_entries<Rung, Element>) {
        if (orders.whole_chunks) {
            return staged_entry<Rung, Element, true>(orders);
        }
    }
    return staged_entry<Rung, Element, false>(orders);
}

/// Alignment that a rung requires. The vectorized rungs refuse operands that they could not load in vectors, although
/// the kernel could use scalars.
enum class Alignment : std::uint8_t { element, chunk };

template <class Rung, class Element>
SimtKernel staged_kernel(SimtOrders orders, Alignment alignment)
{
    constexpr const SimtConfig& config = Rung::config;
    return {.function = staged_entry<Rung, Element>(orders),
            .block_m = config.block_m,
            .block_n = config.block_n,
            .block_k = config.block_k,
            .threads = config.threads(),
            .shared_bytes = 0,  // static: all stages fit in the 48 KiB that need no opt-in
            .required_alignment = (alignment == Alignment::chunk ? config.chunk : 1) * sizeof(Element)};
}

template <class Element>
SimtKernel register_blocked_kernel(SimtOrders orders, SimtTile tile)
{
    switch (tile) {
        case SimtTile::medium: return staged_kernel<RegisterBlockedMedium, Element>(orders, Alignment::element);
        case SimtTile::small: return staged_kernel<RegisterBlockedSmall, Element>(orders, Alignment::element);
        case SimtTile::large: break;
    }
    return staged_kernel<RegisterBlockedLarge, Element>(orders, Alignment::element);
}

template <class Element>
SimtKernel typed_simt_kernel(SimtRung rung, SimtOrders orders, SimtTile tile)
{
    switch (rung) {
        case SimtRung::naive: return naive_kernel<Element>();
        case SimtRung::tiled: return staged_kernel<Tiled, Element>(orders, Alignment::element);
        case SimtRung::vectorized: return staged_kernel<Vectorized, Element>(orders, Alignment::chunk);
        case SimtRung::coarsened: return staged_kernel<Coarsened, Element>(orders, Alignment::chunk);
        case SimtRung::register_blocked: break;
    }
    return register_blocked_kernel<Element>(orders, tile);
}

}  // namespace tessera::kernels::detail
