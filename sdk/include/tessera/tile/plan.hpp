#pragma once

/// @file
/// @ingroup tile_programs
/// @brief What is learnt of a program before it is launched. The program runs once with threads that have no tiles, and its
/// operations note what they will need: on the host; or, for a program that is compiled at run time, in the compiler.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#ifndef __CUDACC_RTC__
#include <initializer_list>
#endif

#include "tessera/detail/host_device.hpp"
namespace tessera::tile {

/// The instructions that a program multiplies with.
enum class Instructions : std::uint8_t {
    mma_sync,  ///< of a warp, from compute capability 7.5 on
    wgmma,     ///< of a warpgroup, on Hopper (9.0)
    tcgen05    ///< of a CTA or a pair of CTAs, with sums in tensor memory, on Blackwell (10.x and 11.0)
};

namespace detail {

/// How a CTA's dynamic shared memory is divided: what exchanges use, the ring, its barriers.
struct SharedMemory {
    std::uint32_t held = 0;         // where operands are that stay for a work tile
    std::uint32_t ring = 0;         // where stages begin
    std::uint32_t stage_bytes = 0;  // of each
    std::int32_t stages = 0;
    std::uint32_t bytes = 0;  // of all
};

/// Stages of a ring at most.
inline constexpr int most_stages = 8;
/// Operands that stay for a work tile at most.
inline constexpr int most_held = 4;

/// Whose tiles of the output a side of another matrix has, where one is loaded or stored.
enum class Along : std::uint8_t { nothing, rows, columns };

#ifndef __CUDACC_RTC__
/// What a program needs.
struct Plan {
    std::int64_t tiles = -1;                 // of the first partition that the program goes through; -1: there was none
    std::size_t scratch_bytes = 0;           // shared memory for exchanges between threads
    std::size_t stage_bytes = 0;             // of a ring slot
    std::size_t held_bytes = 0;              // of operands that stay for a work tile
    int held = 0;                            // how many there are at once
    int held_steps = 0;                      // tiles of the longest band of which one is held
    bool by_tma = true;                      // TMA can address every input that passes through shared memory
    std::int64_t unequal_steps[2] = {0, 0};  // lengths of two bands of one stream that differ
    std::int64_t unequal_tiles[2] = {0, 0};  // tiles of two partitions that differ
    std::int64_t unequal_batches[2] = {0, 0};  // of the output, and of an input with others
    std::int64_t batches = 1;                  // of the output
    std::int64_t grid[2] = {0, 0};             // rows and columns of its tiles
    std::int64_t not_whole[4] = {0, 0, 0,
                                 0};  // a matrix that is not whole tiles, though it must be: extents, and the tile's
    std::int64_t too_few[4] = {0, 0, 0, 0};  // tiles of a matrix that has fewer than are used, and those
    bool gathers = false;                    // a stream has rows that a vector names
    int devices[2] = {-1, -1};               // of the first matrix, and of one on another device
    // What decides on clusters.
    bool reads_row = false;        // the program asks for a place's row
    bool reads_column = false;     // and for its column
    bool streams_rows = false;     // a stream has a band that places beside each other have
    bool streams_columns = false;  // and one that places above and below each other have
    bool other_grids = false;      // outputs have other rows and columns of tiles

    void need_scratch(std::size_t bytes) noexcept { scratch_bytes = bytes > scratch_bytes ? bytes : scratch_bytes; }
    void note_places(std::int64_t rows, std::int64_t columns, std::int64_t matrices) noexcept
    {
        const std::int64_t count = rows * columns * matrices;
        if (tiles < 0) {
            batches = matrices;
            tiles = count;
            grid[0] = rows;
            grid[1] = columns;
        } else if (tiles != count) {
            unequal_tiles[0] = tiles;
            unequal_tiles[1] = count;
        }
        other_grids = other_grids || grid[0] != rows || grid[1] != columns;
    }
    /// Notes a matrix that must be whole tiles, and how many of them are used along each side.
    void note_whole(std::int64_t rows, std::int64_t columns, std::int64_t tile_rows, std::int64_t tile_columns,
                    Along of_rows, Along of_columns) noexcept
    {
        if (not_whole[2] != 0 || too_few[2] + too_few[3] != 0) {
            return;  // the first one is reported
        }
        const std::int64_t used_rows = used(of_rows);
        const std::int64_t used_columns = used(of_columns);
        const auto note = [](std::int64_t(&to)[4], std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
            to[0] = a;
            to[1] = b;
            to[2] = c;
            to[3] = d;
        };
        if (rows % tile_rows != 0 || columns % tile_columns != 0) {
            note(not_whole, rows, columns, tile_rows, tile_columns);
        } else if (rows / tile_rows < used_rows || columns / tile_columns < used_columns) {
            note(too_few, rows / tile_rows, columns / tile_columns, used_rows, used_columns);
        }
    }
    std::int64_t used(Along along) const noexcept
    {
        return along == Along::nothing ? 0 : grid[along == Along::rows ? 0 : 1];
    }
    void note_extents(std::initializer_list<std::int64_t> extents) noexcept
    {
        for (const std::int64_t extent : extents) {
            if (extent != *extents.begin()) {
                unequal_steps[0] = *extents.begin();
                unequal_steps[1] = extent;
            }
        }
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

/// Notes shared memory for an exchange of a tile in `Layout`.
template <class Layout, std::size_t Bytes>
TESSERA_DETAIL_HOST_DEVICE inline void need_scratch()
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->need_scratch(Bytes);
    }
#endif
}

/// Notes a matrix of which the program uses that of a place's batch. `Memory` is `detail::Memory`.
template <class Machine, class Memory>
TESSERA_DETAIL_HOST_DEVICE inline void note_matrix([[maybe_unused]] const Memory& memory)
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->note_device(memory.device);
        plan->note_batches(memory.batches);
    }
#endif
}

/// Notes that the program uses memory of a device.
TESSERA_DETAIL_HOST_DEVICE inline void note_device([[maybe_unused]] int device)
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->note_device(device);
    }
#endif
}

/// Notes that the program goes through the places of an output.
template <class Machine, class Memory>
TESSERA_DETAIL_HOST_DEVICE inline void note_places([[maybe_unused]] const Memory& memory,
                                                   [[maybe_unused]] std::int64_t rows,
                                                   [[maybe_unused]] std::int64_t columns)
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->note_places(rows, columns, memory.batches);
    }
#endif
}

/// Notes a matrix of whole tiles. `View` is an input or output.
template <class View>
TESSERA_DETAIL_HOST_DEVICE inline void note_whole([[maybe_unused]] const View& view, [[maybe_unused]] Along of_rows,
                                                  [[maybe_unused]] Along of_columns)
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->note_whole(view.memory().rows, view.memory().columns, View::rows, View::columns, of_rows, of_columns);
    }
#endif
}

/// Notes a band whose one tile is held.
TESSERA_DETAIL_HOST_DEVICE inline void note_held_band([[maybe_unused]] int steps)
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->held_steps = steps > plan->held_steps ? steps : plan->held_steps;
    }
#endif
}

/// Notes that the program asks for a place's row or column.
TESSERA_DETAIL_HOST_DEVICE inline void note_place_is_read([[maybe_unused]] bool row, [[maybe_unused]] bool column)
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->reads_row = plan->reads_row || row;
        plan->reads_column = plan->reads_column || column;
    }
#endif
}

/// Notes which places have the bands of a stream.
TESSERA_DETAIL_HOST_DEVICE inline void note_shared_bands([[maybe_unused]] bool of_rows,
                                                         [[maybe_unused]] bool of_columns)
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->streams_rows = plan->streams_rows || of_rows;
        plan->streams_columns = plan->streams_columns || of_columns;
    }
#endif
}

/// Notes a stream of rows that a vector names.
TESSERA_DETAIL_HOST_DEVICE inline void note_gather()
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->gathers = true;
    }
#endif
}

/// Notes a stream whose steps have `Bytes` bytes.
template <std::size_t Bytes, class... Bands>
TESSERA_DETAIL_HOST_DEVICE inline void note_stream([[maybe_unused]] const Bands&... bands)
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->need_stage(Bytes);
        plan->by_tma = plan->by_tma && (bands.view().has_map() && ...);
        plan->note_extents({bands.extent()...});
    }
#endif
}

/// Notes a tile that is held. `count` and `bytes` are those of all held at the time, with this one.
template <class View>
TESSERA_DETAIL_HOST_DEVICE inline void note_held([[maybe_unused]] const View& view, [[maybe_unused]] int count,
                                                 [[maybe_unused]] std::uint32_t bytes)
{
#ifndef __CUDA_ARCH__
    if (Plan* const plan = planning()) {
        plan->by_tma = plan->by_tma && view.has_map();
        plan->held_bytes = bytes > plan->held_bytes ? bytes : plan->held_bytes;
        plan->held = count > plan->held ? count : plan->held;
    }
#endif
}
#endif  // __CUDACC_RTC__

}  // namespace detail

}  // namespace tessera::tile

#ifdef __CUDACC_RTC__
#include "tessera/tile/plan_comments.cuh"
#endif
