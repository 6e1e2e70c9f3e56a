#pragma once

/// The variants that tests walk.

#include <vector>

#include "tessera/gemm_problem.hpp"

namespace tessera {

/// Whether the variant adds products one by one, in ascending k.
constexpr bool is_simt(Variant variant) { return variant >= Variant::simt_naive && variant < Variant::hopper; }

/// All of those: the ones that run f32 on every device.
inline std::vector<Variant> simt_variants()
{
    std::vector<Variant> variants = all_variants();
    std::erase_if(variants, [](Variant variant) { return !is_simt(variant); });
    return variants;
}

}  // namespace tessera
