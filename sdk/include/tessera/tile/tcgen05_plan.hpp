#pragma once

/// @file
/// @ingroup tile_programs
/// @brief What is learnt of a program before it is launched on tcgen05, besides its `Plan`: how much tensor memory it needs, and
/// whether pairs of CTAs can run it. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>

#include "tessera/detail/host_device.hpp"
#include "tessera/device/tile_raster.hpp"
#include "tessera/tile/plan.hpp"

namespace tessera::tile::detail {

/// Tiles in tensor memory at most.
inline constexpr int most_slots = 8;
/// All columns of tensor memory: a CTA of a program has its SM to itself.
inline constexpr std::uint32_t tensor_memory_columns = 512;
/// The barriers of a CTA whose sums are in tensor memory.
inline constexpr std::uint32_t bytes_of_tcgen05_barriers = 8 * (2 * most_stages + 2 * most_held + 3 * most_slots) + 8;

/// How a program runs on tcgen05, besides its shared memory.
struct TensorMemory {
    TileRaster pairs;                // of pairs of places; a single CTA has no use for it
    std::uint32_t slot_columns = 0;  // for one tile
    std::int32_t slots = 0;
};

#ifndef __CUDACC_RTC__
/// What a program needs of tcgen05.
struct Tcgen05Plan {
    std::int64_t tile_rows = 0;          // of the output
    std::int64_t tile_columns = 0;       // of the output
    std::size_t pair_stage_bytes = 0;    // of a ring slot in a CTA of a pair
    int products = 0;                    // that the program has
    int tiles = 0;                       // in tensor memory at once
    std::uint32_t columns = 0;           // of the widest of them
    const char* refusal = nullptr;       // why the program does not run on it
    const char* pair_refusal = nullptr;  // why not in pairs

    void refuse(const char* why) noexcept { refusal = refusal != nullptr ? refusal : why; }
    void refuse_pairs(const char* why) noexcept { pair_refusal = pair_refusal != nullptr ? pair_refusal : why; }
    void note_places(std::int64_t rows, std::int64_t row_columns) noexcept
    {
        if (tile_rows == 0) {
            tile_rows = rows;
            tile_columns = row_columns;
        } else if (rows != tile_rows || row_columns != tile_columns) {
            refuse_pairs("the program has outputs of other tile rows and columns");
        }
    }
    void note_tile(std::uint32_t its_columns, int count) noexcept
    {
        tiles = count > tiles ? count : tiles;
        columns = its_columns > columns ? its_columns : columns;
    }
};

/// The plan that the calling thread makes; null while it makes none.
inline Tcgen05Plan*& tcgen05_planning() noexcept
{
    static thread_local Tcgen05Plan* plan = nullptr;
    return plan;
}
#endif

// Nobody plans for tcgen05 at run time: what a program does with its sums is known only where it runs.
#if !defined(__CUDA_ARCH__) && !defined(__CUDACC_RTC__)
#define TESSERA_DETAIL_NOTE(WHAT)                           \
    do {                                                    \
        if (Tcgen05Plan* const plan = tcgen05_planning()) { \
            plan->WHAT;                                     \
        }                                                   \
    } while (false)
#else
#define TESSERA_DETAIL_NOTE(WHAT) static_assert(true)
#endif

/// Notes why the program does not run on tcgen05.
TESSERA_DETAIL_HOST_DEVICE inline void note_tcgen05_refusal([[maybe_unused]] const char* why)
{
    TESSERA_DETAIL_NOTE(refuse(why));
}
/// Notes why the program does not run in pairs of CTAs.
TESSERA_DETAIL_HOST_DEVICE inline void note_pair_refusal([[maybe_unused]] const char* why)
{
    TESSERA_DETAIL_NOTE(refuse_pairs(why));
}
/// Notes a product.
TESSERA_DETAIL_HOST_DEVICE inline void note_product() { TESSERA_DETAIL_NOTE(products++); }
/// Notes the rows and columns of places of an output.
TESSERA_DETAIL_HOST_DEVICE inline void note_rows_of_places([[maybe_unused]] std::int64_t rows,
                                                           [[maybe_unused]] std::int64_t columns)
{
    TESSERA_DETAIL_NOTE(note_places(rows, columns));
}
/// Notes a stream: the bytes of a step in each CTA of a pair.
TESSERA_DETAIL_HOST_DEVICE inline void note_stream_of_pair([[maybe_unused]] std::size_t bytes)
{
    TESSERA_DETAIL_NOTE(pair_stage_bytes = bytes > plan->pair_stage_bytes ? bytes : plan->pair_stage_bytes);
}
/// Notes a tile in tensor memory.
/// @param columns  that it takes there
/// @param count    how many there are at the time, with this one
TESSERA_DETAIL_HOST_DEVICE inline void note_tile_in_tensor_memory([[maybe_unused]] std::uint32_t columns,
                                                                  [[maybe_unused]] int count)
{
    TESSERA_DETAIL_NOTE(note_tile(columns, count));
}

#undef TESSERA_DETAIL_NOTE

}  // namespace tessera::tile::detail
