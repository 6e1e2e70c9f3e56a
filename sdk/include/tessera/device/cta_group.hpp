#pragma once

/// @file
/// @ingroup device_clusters
/// @brief Who takes part in a tcgen05 operation: one CTA or a pair. Usable on host and device.

#include "tessera/detail/language.hpp"

#include <cstdint>

namespace tessera {

/// `.cta_group` of tcgen05: one CTA with its own tensor memory, or the pair of CTAs whose ranks in the cluster differ
/// only in the lowest bit. A kernel uses one of the two throughout.
/// @ingroup device_clusters
enum class CtaGroup : std::uint8_t {
    one = 1,  ///< `cta_group::1`
    pair = 2  ///< `cta_group::2`
};

}  // namespace tessera
