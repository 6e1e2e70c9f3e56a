#pragma once

/// @file
/// @ingroup tile_programs
/// @brief What is learnt of a program before it is launched on tcgen05, besides its `Plan`: how much tensor memory it needs, and
/// whether pairs of CTAs can run it. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#ifndef __CUDACC_RTC__
#include <source_location>
#include <string_view>
#endif

#include "tessera/detail/host_device.hpp"
#include "tessera/device/tile_raster.hpp"
#include "tessera/tile/plan.hpp"
#include "tessera/tile/staged_tile.hpp"
#ifndef __CUDACC_RTC__
#include "tessera/tile/staged_map.hpp"
#endif

namespace tessera::tile::detail {

/// Tiles in tensor memory at most.
inline constexpr int most_slots = 8;
/// All columns of tensor memory: a CTA of a program has its SM to itself.
inline constexpr std::uint32_t tensor_memory_columns = 512;
/// The barriers of a CTA whose sums are in tensor memory.
inline constexpr std::uint32_t bytes_of_tcgen05_barriers = 8 * (2 * most_stages + 2 * most_held + 3 * most_slots) + 8;

/// How a program runs on tcgen05, besides its shared memory.
struct TensorMemory {
    TileRaster groups;               // of the places of a pair, or of a cluster's; a single CTA has no use for it
    std::uint32_t slot_columns = 0;  // for one tile
    std::int32_t slots = 0;
};

/// Why a program with products does not run on tcgen05. `text_of` has the sentences.
enum class Tcgen05Refusal : std::uint8_t {
    none,
    sums,              // of a shape that tensor memory does not have
    operand,           // that the tensor core cannot read
    register_operand,  // of a shape that tensor memory does not have
    passed_on,         // sums are used after a copy took them over
    unknown            // what is in tensor memory depends on the run: for a program that is compiled at run time
};
/// Why a program runs on tcgen05 without pairs of CTAs.
enum class PairRefusal : std::uint8_t {
    none,
    product,           // of a shape that a pair does not have
    bands,             // the CTAs would share A, or not B
    register_operand,  // which one CTA multiplies
    row,               // the program asks for a place's row
    outputs,           // of other numbers of tile rows or columns
    map                // of halves of B: the input has another use, too, or is no member of the program
};

#ifndef __CUDACC_RTC__
/// Says it in words.
std::string_view text_of(Tcgen05Refusal refusal);
/// Says it in words.
std::string_view text_of(PairRefusal refusal);

/// An input whose tiles a pair would load in other boxes if it halved them.
struct PairMap {
    std::size_t offset = 0;  // of its tensor map in the program
    bool is_halved = false;  // the pair has halves of its tiles
    StagedMap of{};          // halves
    AnyMemory memory{};
};
/// Such inputs of a program at most.
inline constexpr int most_pair_maps = 12;

/// What a program needs of tcgen05.
struct Tcgen05Plan {
    std::int64_t tile_rows = 0;        // of the output
    std::int64_t tile_columns = 0;     // of the output
    std::size_t pair_stage_bytes = 0;  // of a ring slot in a CTA of a pair
    int products = 0;                  // that the program has
    int tiles = 0;                     // in tensor memory at once
    std::uint32_t columns = 0;         // of the widest of them
    Tcgen05Refusal refusal{};          // why the program does not run on it: the first reason
    PairRefusal pair_refusal{};        // why not in pairs: the first reason
    PairMap maps[most_pair_maps]{};
    int map_count = 0;

    void refuse(Tcgen05Refusal why) noexcept { refusal = refusal != Tcgen05Refusal::none ? refusal : why; }
    void refuse_pairs(PairRefusal why) noexcept
    {
        pair_refusal = pair_refusal != PairRefusal::none ? pair_refusal : why;
    }
    void note_places(std::int64_t rows, std::int64_t row_columns) noexcept
    {
        if (tile_rows == 0) {
            tile_rows = rows;
            tile_columns = row_columns;
        } else if (rows != tile_rows || row_columns != tile_columns) {
            refuse_pairs(PairRefusal::outputs);
        }
    }
    void note_tile(std::uint32_t its_columns, int count) noexcept
    {
        tiles = count > tiles ? count : tiles;
        columns = its_columns > columns ? its_columns : columns;
    }
    void note_stream_of_pair(std::size_t bytes) noexcept
    {
        pair_stage_bytes = bytes > pair_stage_bytes ? bytes : pair_stage_bytes;
    }
    void note_map_of_pair(const PairMap& map) noexcept
    {
        for (int i = 0; i < map_count; ++i) {
            if (maps[i].offset == map.offset) {
                refuse_pairs(maps[i].is_halved == map.is_halved ? PairRefusal::none : PairRefusal::map);
                return;
            }
        }
        if (map_count == most_pair_maps) {
            refuse_pairs(PairRefusal::map);
        } else {
            maps[map_count++] = map;
        }
    }
};

/// Puts the tensor maps of halves into the bytes of a program that runs in pairs.
/// @throws Error  as `TensorMap::encode`
void encode_maps_of_pair(const Tcgen05Plan& plan, std::byte* program, const std::source_location& caller);

/// A plan while it is made, and the program that it is for.
struct Tcgen05Planning {
    Tcgen05Plan plan;
    const void* program = nullptr;
    std::size_t program_bytes = 0;

    /// Notes a map of halves. One that is no member of the program cannot be replaced.
    void note_map_of_pair(const void* map, bool is_halved, const StagedMap& of, const AnyMemory& memory) noexcept
    {
        const std::size_t offset = reinterpret_cast<std::uintptr_t>(map) - reinterpret_cast<std::uintptr_t>(program);
        if (offset < program_bytes) {
            plan.note_map_of_pair({offset, is_halved, of, memory});
        } else {
            plan.refuse_pairs(PairRefusal::map);
        }
    }
};

/// The plan that the calling thread makes; null while it makes none.
inline Tcgen05Planning*& tcgen05_planning() noexcept
{
    static thread_local Tcgen05Planning* planning = nullptr;
    return planning;
}

/// Calls `note` with the plan that the calling thread makes, if it makes one.
template <class Note>
TESSERA_DETAIL_HOST_DEVICE inline void note_for_tcgen05([[maybe_unused]] Note note)
{
#ifndef __CUDA_ARCH__
    if (Tcgen05Planning* const planning = tcgen05_planning()) {
        note(planning->plan);
    }
#endif
}
#endif

// What follows is called in the planning pass alone.

/// Notes why the program does not run on tcgen05.
template <Tcgen05Refusal Why>
TESSERA_DETAIL_HOST_DEVICE inline void note_refusal()
{
#ifdef __CUDACC_RTC__
    asm volatile("// tessera.refusal %0" ::"n"(static_cast<int>(Why)));
#else
    note_for_tcgen05([](auto& plan) { plan.refuse(Why); });
#endif
}
/// Notes why the program does not run in pairs of CTAs.
template <PairRefusal Why>
TESSERA_DETAIL_HOST_DEVICE inline void note_refusal()
{
#ifdef __CUDACC_RTC__
    asm volatile("// tessera.pair_refusal %0" ::"n"(static_cast<int>(Why)));
#else
    note_for_tcgen05([](auto& plan) { plan.refuse_pairs(Why); });
#endif
}
/// Notes a product.
TESSERA_DETAIL_HOST_DEVICE inline void note_product()
{
#ifdef __CUDACC_RTC__
    asm volatile("// tessera.product" ::);
#else
    note_for_tcgen05([](auto& plan) { plan.products++; });
#endif
}
/// Notes the rows and columns of places of an output. At run time the host knows them.
TESSERA_DETAIL_HOST_DEVICE inline void note_rows_of_places([[maybe_unused]] std::int64_t rows,
                                                           [[maybe_unused]] std::int64_t columns)
{
#ifndef __CUDACC_RTC__
    note_for_tcgen05([&](auto& plan) { plan.note_places(rows, columns); });
#endif
}
/// Notes a stream: the bytes of a step in each CTA of a pair.
TESSERA_DETAIL_HOST_DEVICE inline void note_stream_of_pair(std::uint32_t bytes)
{
#ifdef __CUDACC_RTC__
    asm volatile("// tessera.pair_stream %0" ::"r"(bytes));
#else
    note_for_tcgen05([&](auto& plan) { plan.note_stream_of_pair(bytes); });
#endif
}
/// Notes an input that a stream or a held tile uses, if a pair loads halves of its tiles in other boxes than whole ones.
template <class View>
TESSERA_DETAIL_HOST_DEVICE inline void note_map_of_pair([[maybe_unused]] const View& view,
                                                        [[maybe_unused]] bool is_halved)
{
    using Halved = HalvedTile<typename View::Staged>;
    if constexpr (Halved::has_own_map) {
#ifdef __CUDACC_RTC__
        asm volatile("// tessera.pair_map %0 %1" ::"r"(view.memory().device), "r"(is_halved ? 1 : 0));
#elif !defined(__CUDA_ARCH__)
        if (Tcgen05Planning* const planning = tcgen05_planning()) {
            planning->note_map_of_pair(&view.map(), is_halved, map_of<Halved>, untyped(view.memory()));
        }
#endif
    }
}
/// Notes a tile in tensor memory.
/// @param columns  that it takes there
/// @param count    how many there are at the time, with this one
TESSERA_DETAIL_HOST_DEVICE inline void note_tile_in_tensor_memory(std::uint32_t columns, int count)
{
#ifdef __CUDACC_RTC__
    asm volatile("// tessera.tensor_tile %0 %1" ::"r"(columns), "r"(count));
#else
    note_for_tcgen05([&](auto& plan) { plan.note_tile(columns, count); });
#endif
}

}  // namespace tessera::tile::detail
