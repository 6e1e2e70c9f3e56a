#pragma once

/// Contenders for single configurations of the Hopper kernel, to see how good the library's choice is.

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "gemm/candidate_file.hpp"
#include "gemm/contender.hpp"

namespace tessera::bench {

/// "tessera_config", "tessera_config_2", ...: the fastest, by Task::race, of the configurations and launch parameters that
/// can run the problem and whose description contains `text`, such as "PingPong128x128" or "stream-K". Every description
/// contains an empty text.
///
/// @param shortlist  keeps those that the cost model expects within this factor of its best, and of those that differ in
///                   the raster alone the first; 0: all
/// @param finalists  number of contenders; from two on, the cost model's choice is one of them
/// @param file       receives the times of all of them, with what the cost model expects; or null
std::vector<GemmContender> hopper_config_contenders(const std::string& text, double shortlist = 0,
                                                    std::size_t finalists = 1,
                                                    const std::shared_ptr<CandidateFile>& file = nullptr);

}  // namespace tessera::bench
