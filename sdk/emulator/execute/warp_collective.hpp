#pragma once

// What a shfl moves where, for others than its handler.

#include "machine/lanes.hpp"
#include "program/operation.hpp"

namespace tessera::emulator {

class Warp;

/// Of the lanes in `active`, those that read a lane of `marked` when they execute the shfl `operation`.
[[nodiscard]] LaneMask shuffled_lanes(const Warp& warp, const Operation& operation, LaneMask active, LaneMask marked);

}  // namespace tessera::emulator
