#pragma once

// Paths::both: what the fast path of memory accesses does, compared with what the rules say for each lane alone.

#include "execute/memory_lanes.hpp"

namespace tessera::emulator {

/// The fast path has accepted an access. Each lane alone must find the same bytes, and nothing to report.
/// @throws PathsDiffer
void compare_pointers(Warp& warp, const Operation& operation, const MemoryPayload& payload, LaneMask active,
                      const LanePointers& pointers);

/// Handler of loads and stores: runs `payload.compared`, and compares the registers or the memory afterwards.
/// @throws PathsDiffer
Step execute_compared(Warp& warp, const Operation& operation, LaneMask active);

}  // namespace tessera::emulator
