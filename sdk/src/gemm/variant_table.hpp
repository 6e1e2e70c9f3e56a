#pragma once

/// The variants in order of preference, with their backends and what explain() says of each.

#include <algorithm>
#include <array>
#include <string_view>

#include "gemm/backend.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

struct VariantEntry {
    Variant variant;
    std::string_view name;
    const Backend& (*backend)() noexcept;
    std::string_view strength;  // for explain(): why it runs
    std::string_view weakness;  // for explain(): why it does not run although it could
};

inline constexpr std::string_view blackwell_strength = "the fewest cycles in the model of docs/blackwell-ladder.md";

// Fastest first. docs/simt-ladder.md has the measurements behind the order.
inline constexpr std::array variants{
    VariantEntry{Variant::hopper, "hopper", hopper_backend, "the tensor cores of compute capability 9.0, fed by TMA",
                 "measured slower"},
    VariantEntry{Variant::blackwell_cta_pair_256, "blackwell_cta_pair_256", blackwell_backend, blackwell_strength,
                 "slower in the model"},
    VariantEntry{Variant::blackwell_cta_pair_512, "blackwell_cta_pair_512", blackwell_backend, blackwell_strength,
                 "has no room to overlap a tile's epilogue with the next tile"},
    VariantEntry{Variant::blackwell_cta_pair, "blackwell_cta_pair", blackwell_backend, blackwell_strength,
                 "slower in the model"},
    VariantEntry{Variant::blackwell_clc_multicast, "blackwell_clc_multicast", blackwell_backend, blackwell_strength,
                 "each CTA reads all of B from its own shared memory"},
    VariantEntry{Variant::blackwell_clc, "blackwell_clc", blackwell_backend, blackwell_strength, "slower in the model"},
    VariantEntry{Variant::blackwell_persistent, "blackwell_persistent", blackwell_backend, blackwell_strength,
                 "its tiles are assigned before the launch"},
    VariantEntry{Variant::blackwell_warp_specialized, "blackwell_warp_specialized", blackwell_backend,
                 blackwell_strength, "no overlap of a tile's epilogue with the next tile"},
    VariantEntry{Variant::blackwell_pipelined, "blackwell_pipelined", blackwell_backend, blackwell_strength,
                 "one thread issues both loads and MMAs"},
    VariantEntry{Variant::blackwell_swizzled, "blackwell_swizzled", blackwell_backend, blackwell_strength,
                 "waits for every load"},
    VariantEntry{Variant::blackwell_tiled, "blackwell_tiled", blackwell_backend, blackwell_strength,
                 "loads 16 bytes of a row at a time"},
    VariantEntry{Variant::simt_register_blocked, "simt_register_blocked", simt_backend,
                 "the fastest SIMT variant at every measured size, and takes any alignment", "not requested"},
    VariantEntry{Variant::simt_coarsened, "simt_coarsened", simt_backend,
                 "the fastest SIMT variant that can run this problem",
                 "reuses each loaded element along one dimension only"},
    VariantEntry{Variant::simt_vectorized, "simt_vectorized", simt_backend,
                 "the fastest SIMT variant that can run this problem", "reads shared memory for every product"},
    VariantEntry{Variant::simt_tiled, "simt_tiled", simt_backend, "the fastest SIMT variant that can run this problem",
                 "reads shared memory element by element"},
    VariantEntry{Variant::simt_naive, "simt_naive", simt_backend, "the fastest SIMT variant that can run this problem",
                 "reads global memory for every product"},
};

inline const VariantEntry& entry_of(Variant variant)
{
    return *std::find_if(variants.begin(), variants.end() - 1,
                         [&](const VariantEntry& entry) { return entry.variant == variant; });
}

}  // namespace tessera::detail
