#pragma once

/// @file
/// @ingroup tile_programs
/// @brief `LaunchReport`: what `tile::launch` chose for a program, and why.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <string_view>

#include "tessera/tile/plan.hpp"

namespace tessera::tile {

/// How a program was launched.
struct LaunchReport {
    Instructions instructions = Instructions::mma_sync;  ///< that it multiplies with
    bool pairs = false;                                  ///< two CTAs multiply together
    unsigned ctas = 0;                                   ///< of the grid; 0: there was nothing to do
    int stages = 0;                                      ///< steps of a stream that are in shared memory at once
    std::size_t shared_memory_bytes = 0;                 ///< of a CTA
    std::string_view reason{};                           ///< why not on the device's best instructions; empty if it is
    bool by_tma = false;                                 ///< TMA loads what is streamed and held
    int cluster = 1;                                     ///< CTAs of a cluster
    std::string_view cluster_reason{};                   ///< why not as many as the hints want; empty if it is
};

}  // namespace tessera::tile
