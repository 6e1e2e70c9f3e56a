#pragma once

/// The configurations of the Hopper kernels by name, to see what the choice among them is worth.

#include <string>

#include "gemm/contender.hpp"

namespace tessera::bench {

/// "tessera_config": the fastest, by Task::race, of the configurations and ways to launch them that can run the problem
/// and whose description contains `text`, such as "PingPong128x128" or "stream-K"; an empty text is in all.
GemmContender hopper_config_contender(std::string text);

}  // namespace tessera::bench
