#pragma once

#include <cstdint>

namespace tessera::emulator {

/// A thread of control in a cluster: a warp, or an asynchronous operation while it runs. See checks/clocks.hpp.
using Agent = std::uint16_t;

}  // namespace tessera::emulator
