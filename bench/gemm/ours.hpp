#pragma once

/// This library's contenders.

#include <string>
#include <vector>

#include "gemm/contender.hpp"

namespace tessera::bench {

/// One contender for each variant: "tessera_automatic" is what Gemm::launch runs by itself.
///
/// @param variants  names as variant_from_string knows them, or "none". @throws Error `invalid_argument` for others
std::vector<GemmContender> our_contenders(const std::vector<std::string>& variants);

/// "tessera_tuned": what Gemm::tune finds for each problem. Where TESSERA_TUNING_CACHE names a file, it is kept there.
GemmContender tuned_contender();

}  // namespace tessera::bench
