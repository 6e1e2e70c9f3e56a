#pragma once

/// @file
/// @ingroup tile_programs
/// @brief How a program is launched: on which kernel, with how many CTAs, stages and bytes. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <source_location>

#include "tessera/stream.hpp"
#include "tessera/tile/plan.hpp"

namespace tessera::tile::detail {

/// A kernel that a choice may fall on.
struct Candidate {
    const void* kernel;
    int threads;  // of a CTA. A kernel whose limit is another has no code for the device
};

/// How a program is launched.
struct Choice {
    Instructions instructions = Instructions::mma_sync;
    SharedMemory memory;
    unsigned grid = 0;
};

/// Checks a plan and chooses a kernel.
/// @param stages  that the program wishes; 0: as many as fit
/// @throws Error  as `tile::launch`
Choice choose(const Plan& plan, StreamRef stream, const Candidate& mma_sync, const Candidate& wgmma, int stages,
              const std::source_location& caller);

}  // namespace tessera::tile::detail
