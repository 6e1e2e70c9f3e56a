#pragma once

/// @file
/// @ingroup tile_programs
/// @brief How a program is launched: on which kernel, with how many CTAs, stages and bytes. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <source_location>

#include "tessera/device/tile_raster.hpp"
#include "tessera/stream.hpp"
#include "tessera/tile/hints.hpp"
#include "tessera/tile/launch_report.hpp"
#include "tessera/tile/plan.hpp"
#include "tessera/tile/tcgen05_plan.hpp"

namespace tessera::tile::detail {

/// A kernel that a choice may fall on.
struct Candidate {
    const void* kernel = nullptr;  // null: there is none
    int threads = 0;               // of a CTA. A kernel whose limit is another has no code for the device
};

/// All kernels of a program.
struct Candidates {
    Candidate mma_sync;
    Candidate mma_sync_by_tma;
    Candidate wgmma;
    Candidate clusters{};  // of CTAs, on wgmma: only for hints that want some
    Candidate tcgen05;
    Candidate pairs;                // of CTAs, on tcgen05
    Candidate clusters_of_pairs{};  // the same: only for hints that want some
};

/// What a program needs on tcgen05.
struct PlanWithTensorMemory {
    Plan plan;
    Tcgen05Plan tcgen05;
};

/// How a program is launched.
struct Choice {
    LaunchReport report;
    SharedMemory memory;
    TensorMemory tensor_memory;
    TileRaster groups;  // of a cluster's places, on wgmma
};

/// Returns true if the stream's device has tcgen05.
bool has_tensor_memory(StreamRef stream, const std::source_location& caller);

/// Checks a plan and chooses a kernel.
/// @param plan          for mma.sync and wgmma
/// @param tcgen05_plan  for tcgen05; used only where the device has it
/// @param hints         the program's
/// @throws Error  as `tile::launch`
Choice choose(const Plan& plan, const PlanWithTensorMemory& tcgen05_plan, StreamRef stream,
              const Candidates& candidates, const Hints& hints, const std::source_location& caller);

}  // namespace tessera::tile::detail
