#pragma once

/// This library's contenders.

#include <string>
#include <vector>

#include "gemm/contender.hpp"

namespace tessera::bench {

/// "tessera_automatic", which is Gemm::launch as a user calls it, and one contender for each of the named variants.
///
/// @param variants  names as variant_from_string knows them. @throws Error `invalid_argument` for others
std::vector<GemmContender> our_contenders(const std::vector<std::string>& variants);

}  // namespace tessera::bench
