#pragma once

/// Who takes part in a tcgen05 operation. Usable on host and device.

#include "tessera/detail/language.hpp"

#include <cstdint>

namespace tessera {

/// `.cta_group` of tcgen05: one CTA with its own tensor memory, or the pair of CTAs whose ranks in the cluster differ
/// in the lowest bit only. A kernel uses one of the two throughout.
enum class CtaGroup : std::uint8_t { one = 1, pair = 2 };

}  // namespace tessera
