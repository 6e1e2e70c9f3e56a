#pragma once

/// @file
/// @ingroup tile_programs
/// @brief What the host learns of a program before it launches it: it runs the program once, with threads that have no tiles.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <source_location>

#include "tessera/detail/host_device.hpp"
#include "tessera/stream.hpp"

namespace tessera::tile {

/// The instructions that a program multiplies with.
enum class Instructions : std::uint8_t {
    mma_sync,  ///< of a warp, from compute capability 7.5 on
    wgmma      ///< of a warpgroup, on Hopper (9.0)
};

namespace detail {

/// What a program needs. The host collects it by running the program with `Absent` tiles.
struct Plan {
    std::int64_t tiles = -1;                 // of the first partition that the program goes through; -1: there was none
    std::size_t scratch_bytes = 0;           // shared memory for exchanges between threads
    std::size_t stage_bytes = 0;             // of a ring slot
    std::size_t held_bytes = 0;              // of operands that stay for a work tile
    int held = 0;                            // how many there are at once
    bool by_tma = true;                      // TMA can address every input that passes through shared memory
    std::int64_t unequal_steps[2] = {0, 0};  // lengths of two bands of one stream that differ
    std::int64_t unequal_tiles[2] = {0, 0};  // tiles of two partitions that differ
    std::int64_t unequal_batches[2] = {0, 0};  // of the output, and of an input with others
    std::int64_t batches = 1;                  // of the output
    int devices[2] = {-1, -1};                 // of the first matrix, and of one on another device

    void need_scratch(std::size_t bytes) noexcept { scratch_bytes = bytes > scratch_bytes ? bytes : scratch_bytes; }
    // Loads that pass through the ring if the program has no streams.
    std::size_t load_bytes = 0;  // of the largest
    bool loads_in_ring = true;   // all can

    void note_load(std::size_t bytes, bool can_pass_ring) noexcept
    {
        load_bytes = bytes > load_bytes ? bytes : load_bytes;
        loads_in_ring = loads_in_ring && can_pass_ring;
    }
    void note_device(int device) noexcept
    {
        if (devices[0] < 0) {
            devices[0] = device;
        } else if (device >= 0 && device != devices[0]) {
            devices[1] = device;
        }
    }
    void note_batches(std::int64_t count) noexcept
    {
        if (count != 1 && count != batches) {
            unequal_batches[0] = batches;
            unequal_batches[1] = count;
        }
    }
    void need_stage(std::size_t bytes) noexcept { stage_bytes = bytes > stage_bytes ? bytes : stage_bytes; }
};

/// The plan that the calling thread makes; null while it makes none.
inline Plan*& planning() noexcept
{
    static thread_local Plan* plan = nullptr;
    return plan;
}

/// Notes shared memory for an exchange; in device code it is there.
TESSERA_DETAIL_HOST_DEVICE inline void need_scratch([[maybe_unused]] std::size_t bytes)
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->need_scratch(bytes);
    }
#endif
}

/// Notes a matrix that the program uses.
TESSERA_DETAIL_HOST_DEVICE inline void note_matrix([[maybe_unused]] int device, [[maybe_unused]] std::int64_t batches)
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->note_device(device);
        plan->note_batches(batches);
    }
#endif
}

/// How a CTA's dynamic shared memory is divided: what exchanges use, the ring, its barriers.
struct SharedMemory {
    std::uint32_t held = 0;         // where operands are that stay for a work tile
    std::uint32_t ring = 0;         // where stages begin
    std::uint32_t stage_bytes = 0;  // of each
    std::int32_t stages = 0;
    std::uint32_t bytes = 0;     // of all
    bool loads_in_ring = false;  // `Input::load` gets its tile through the ring
};

/// Stages of a ring at most.
inline constexpr int most_stages = 8;
/// Operands that stay for a work tile at most.
inline constexpr int most_held = 4;

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

}  // namespace detail

}  // namespace tessera::tile
