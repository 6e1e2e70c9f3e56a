#pragma once

/// Contenders for single configurations of the Hopper kernel, to see how good the library's choice is.

#include <string>

#include "gemm/contender.hpp"

namespace tessera::bench {

/// "tessera_config": the fastest, by Task::race, of the configurations and launch parameters that can run the problem
/// and whose description contains `text`, such as "PingPong128x128" or "stream-K". Every description contains an empty
/// text.
GemmContender hopper_config_contender(std::string text);

}  // namespace tessera::bench
