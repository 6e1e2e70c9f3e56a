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

// Fastest first. docs/simt-ladder.md has the measurements behind the order.
inline constexpr std::array variants{
    VariantEntry{Variant::hopper, "hopper", hopper_backend, "the tensor cores of compute capability 9.0, fed by TMA",
                 "measured slower for so few rows, so short a K or such lines of an operand"},
    VariantEntry{Variant::blackwell, "blackwell", blackwell_backend,
                 "the tensor cores of compute capability 10.0, 10.3 and 11.0, fed by TMA", "slower in the model"},
    VariantEntry{Variant::mma_sync, "mma_sync", mma_backend, "the tensor cores, by instructions of a warp",
                 "reads its operands through registers"},
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
