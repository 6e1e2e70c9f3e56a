#pragma once

/// Lists of variants for tests.

#include <vector>

#include "tessera/gemm_problem.hpp"

namespace tessera {

/// Returns true if the variant adds products one by one, in ascending k.
constexpr bool is_simt(Variant variant)
{
    return variant >= Variant::simt_naive && variant <= Variant::simt_register_blocked;
}

/// All SIMT variants: they run f32 on every device.
inline std::vector<Variant> simt_variants()
{
    std::vector<Variant> variants = all_variants();
    std::erase_if(variants, [](Variant variant) { return !is_simt(variant); });
    return variants;
}

}  // namespace tessera
