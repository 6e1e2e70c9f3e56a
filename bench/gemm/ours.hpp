#pragma once

/// This library's contenders.

#include <string>
#include <vector>

#include "gemm/contender.hpp"

namespace tessera::bench {

/// One contender for each variant: "tessera_automatic" is Gemm::launch as a user calls it.
///
/// @param variants  names as variant_from_string knows them, or "none". @throws Error `invalid_argument` for others
std::vector<GemmContender> our_contenders(const std::vector<std::string>& variants);

}  // namespace tessera::bench
