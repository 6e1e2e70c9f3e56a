#pragma once

// Which lanes a shfl reads, for use outside of its handler.

#include "base/lanes.hpp"
#include "program/operation.hpp"

namespace tessera::emulator {

class Warp;

/// The lanes in `active` that read a lane of `marked` when they execute the shfl `operation`.
[[nodiscard]] LaneMask shuffled_lanes(const Warp& warp, const Operation& operation, LaneMask active, LaneMask marked);

}  // namespace tessera::emulator
