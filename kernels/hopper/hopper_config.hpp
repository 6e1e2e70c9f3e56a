#pragma once

/// The configurations of the Hopper GEMM kernel: the constants that are compiled in. What costs nothing at run time
/// (cluster shape, element types of one size, majors of A and B, raster, split of K) is a kernel parameter instead.
///
/// Terminology: a CTA computes a *tile* of D, (tile_m, tile_n), and walks K in *stages* of 128 bytes of each row. A
/// *consumer* is a warpgroup that issues wgmma and writes D; one more warpgroup loads.

#include <cstdint>

#include "tessera/detail/host_device.hpp"

namespace tessera::kernels {

/// How consumers divide the work.
enum class HopperSchedule : std::uint8_t {
    cooperative,  ///< each has its own rows of the same tile
    ping_pong,    ///< each has its own tile, so that one multiplies while the other writes
    alternating,  ///< intra-CTA split-K: each has every second stage of the tile, and the first adds up both sums
};

/// A configuration is one `constexpr` object of this type, which is the kernel's template argument. To add a tile, add
/// it below, instantiate it in a .cu file and list it in hopper_kernels.cpp.
struct HopperConfig {
    const char* name;         // stable: tuning caches contain it
    int tile_m;               // rows of D per CTA
    int tile_n;               // columns of D per CTA
    int consumers;            // warpgroups that multiply: 1 or 2
    HopperSchedule schedule;  // how they divide the work
    int stages;               // depth of the ring in shared memory
    int ctas = 1;             // CTAs per SM; with two, the next kernel's prologue overlaps this kernel's tail
    bool copies = false;      // the load warpgroup has the fallback load for operands that TMA cannot address
    int load_registers = 40;  // registers per thread of the load warpgroup, a multiple of 8
    int store_buffers = 2;    // per consumer; with two, one is filled while TMA stores the other

    /// Rows of the tile that one consumer computes.
    TESSERA_DETAIL_HOST_DEVICE constexpr int consumer_m() const
    {
        return schedule == HopperSchedule::cooperative ? tile_m / consumers : tile_m;
    }
    /// Number of consumers that take turns at the stages of a tile. The number of stages is a multiple of it.
    TESSERA_DETAIL_HOST_DEVICE constexpr int stages_in_turn() const
    {
        return schedule == HopperSchedule::alternating ? consumers : 1;
    }
    /// Returns true if clusters (stream-K) or the CTAs of one (cluster split-K) may share a tile. Configurations with
    /// more accumulators have no registers left for it.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool shares_tiles() const
    {
        return schedule != HopperSchedule::alternating && accumulators() <= 128;
    }
    /// Accumulator registers per thread of a consumer.
    TESSERA_DETAIL_HOST_DEVICE constexpr int accumulators() const { return consumer_m() / 64 * (tile_n / 2); }
    /// Returns true if a consumer looks at the next stage while it multiplies one. That takes registers, and saves most where
    /// stages are short.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool looks_ahead() const { return accumulators() < 128; }
    TESSERA_DETAIL_HOST_DEVICE constexpr int threads() const { return 128 * (consumers + 1); }
    /// Returns true if consumers take over registers from the load warpgroup. That needs one CTA per SM, which has all
    /// 65536 registers.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool moves_registers() const { return ctas == 1 && consumers > 1; }
    /// Registers per thread of a consumer then: what the load warpgroup leaves, in multiples of 8.
    TESSERA_DETAIL_HOST_DEVICE constexpr int consumer_registers() const
    {
        return (65536 / 128 / 8 * 8 - 8 - load_registers) / consumers / 8 * 8;
    }
    /// Columns of a tile that two-level accumulation multiplies at a time, with 64 sums per thread at most; 0 if there are
    /// no registers for them.
    TESSERA_DETAIL_HOST_DEVICE constexpr int two_level_columns() const
    {
        constexpr int other_registers = 40;  // per thread, besides accumulators and sums
        const int columns = tile_n <= 128 ? tile_n : tile_n % 128 == 0 ? 128 : tile_n % 64 == 0 ? 64 : tile_n;
        const int registers = moves_registers() ? consumer_registers() : 65536 / threads() / ctas;
        return accumulators() + columns / 2 + other_registers <= registers ? columns : 0;
    }
    TESSERA_DETAIL_HOST_DEVICE constexpr int stage_bytes() const { return (tile_m + tile_n) * hopper_row_bytes; }
    /// Columns that the epilogues with code of their own finish at a time: those of a TMA store of 16 bits.
    TESSERA_DETAIL_HOST_DEVICE constexpr int stored_columns() const { return (store_width(tile_n, 2) + 15) / 16 * 16; }
    /// Columns that any other epilogue finishes and stores at a time: fewer if accumulators leave few registers.
    TESSERA_DETAIL_HOST_DEVICE constexpr int epilogue_columns() const
    {
        return accumulators() > 128 ? 16 : accumulators() >= 96 ? 32 : stored_columns();
    }
    /// Columns of D that one store of such an epilogue writes. Of gated pairs, a part has half of them.
    TESSERA_DETAIL_HOST_DEVICE constexpr int part_width(int element_bytes, bool gated) const
    {
        const int columns = epilogue_columns() / (gated ? 2 : 1);
        const int width = store_width(tile_n, element_bytes);
        return columns < width ? columns : width;
    }
    /// Floats of a consumer's bias: one per row or column of its tile, in whole parts.
    TESSERA_DETAIL_HOST_DEVICE constexpr int bias_elements() const
    {
        const int columns = (tile_n + stored_columns() - 1) / stored_columns() * stored_columns();
        return consumer_m() > columns ? consumer_m() : columns;
    }
    /// Dynamic shared memory: stages, store buffers, bias, and barriers.
    TESSERA_DETAIL_HOST_DEVICE constexpr int shared_bytes() const
    {
        const int others = consumers * bias_elements() * 4 + barrier_bytes;
        return stages * stage_bytes() + consumers * store_buffers * hopper_store_bytes + (others + 1023) / 1024 * 1024;
    }

    /// Boxes of C that fit in a stage.
    TESSERA_DETAIL_HOST_DEVICE constexpr int c_boxes_per_stage() const { return stage_bytes() / hopper_store_bytes; }
    /// Boxes of C per 64 rows of a tile: 128 bytes of columns each, and less in the last where the tile ends before.
    TESSERA_DETAIL_HOST_DEVICE constexpr int c_boxes_per_row(int element_bytes) const
    {
        return (tile_n * element_bytes + hopper_row_bytes - 1) / hopper_row_bytes;
    }
    /// Columns of C in the last box of a row of boxes, if they are less than 128 bytes; otherwise 0.
    TESSERA_DETAIL_HOST_DEVICE constexpr int c_columns_of_rest(int element_bytes) const
    {
        return tile_n % (hopper_row_bytes / element_bytes);
    }
    /// Slots of the ring that a tile of C fills.
    TESSERA_DETAIL_HOST_DEVICE constexpr int c_slots(int element_bytes) const
    {
        const int boxes = tile_m / 64 * c_boxes_per_row(element_bytes);
        return (boxes + c_boxes_per_stage() - 1) / c_boxes_per_stage();
    }
    /// Returns true if the ring can carry C: TMA loads it into slots after the stages of the tile, and the consumers of the
    /// tile read every one of them.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool carries_c() const
    {
        return !copies && schedule != HopperSchedule::alternating;
    }

    /// Returns true if the kernel for A and B of `element_bytes` has epilogues with code of their own besides the plain
    /// one. They are for a D of 16 bits, which tf32 matrices seldom have; copying configurations have other bottlenecks.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool streams(int element_bytes) const { return !copies && element_bytes != 4; }
    /// Returns true if these include gelu and silu, which finish a whole store at a time.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool streams_parts(int element_bytes) const
    {
        return streams(element_bytes) && accumulators() <= 128;
    }

    /// Returns true if a tile can hold gated pairs: both halves of its columns are whole parts of the epilogue and whole
    /// stores.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool gates() const { return !copies && (tile_n == 64 || tile_n % 128 == 0); }

    /// Columns of a tile that one TMA store writes: 64, or 32 of fp32, or the whole tile if it is narrower. The rest of the
    /// width needs one more store.
    TESSERA_DETAIL_HOST_DEVICE static constexpr int store_width(int tile_n, int element_bytes)
    {
        const int columns = element_bytes == 4 ? 32 : 64;
        return tile_n < columns ? tile_n : columns;
    }

    static constexpr int hopper_row_bytes = 128;         // bytes of a row in a stage: the widest swizzle
    static constexpr int hopper_store_bytes = 64 * 128;  // bytes of a store buffer: 64 rows
    static constexpr int barrier_bytes = 320;            // bytes reserved for barriers and slices
};

/// Shared memory that a CTA may use, in bytes. The system keeps 1 KiB per CTA of an SM's 228 KiB.
TESSERA_DETAIL_HOST_DEVICE constexpr int hopper_max_shared_bytes(int ctas) { return 228 * 1024 / ctas - 1024; }

/// Returns true if the kernel supports `config` and it fits in shared memory and registers.
constexpr bool is_valid(const HopperConfig& config)
{
    constexpr int other_registers = 72;  // per thread, besides accumulators; PingPong128x168 does not spill with them
    const bool tiles = config.tile_m % 64 == 0 && config.consumer_m() % 64 == 0 && config.consumer_m() > 0 &&
                       config.tile_n % 8 == 0 && config.tile_n <= 256;
    // With intra-CTA split-K, each consumer has every second slot of the ring, and its sums fit in its store buffers.
    const bool turns = config.schedule != HopperSchedule::alternating ||
                       (config.consumers == 2 && config.stages % 2 == 0 &&
                        config.tile_m * config.tile_n * 4 <= config.store_buffers * HopperConfig::hopper_store_bytes);
    return tiles && turns && config.consumers >= 1 && config.consumers <= 2 &&
           (!config.moves_registers() || config.accumulators() + other_registers <= config.consumer_registers()) &&
           // A consumer still has its last stage when it waits for C.
           config.stages >= 3 && (!config.carries_c() || config.c_slots(4) < config.stages) &&
           config.shared_bytes() <= hopper_max_shared_bytes(config.ctas) &&
           (config.ctas == 1 || config.accumulators() <= 64);
}

#define TESSERA_HOPPER_CONFIG(NAME, ...)                                  \
    struct NAME {                                                         \
        static constexpr HopperConfig config{.name = #NAME, __VA_ARGS__}; \
    };                                                                    \
    static_assert(is_valid(NAME::config))

TESSERA_HOPPER_CONFIG(Tile128x256, .tile_m = 128, .tile_n = 256, .consumers = 2,
                      .schedule = HopperSchedule::cooperative, .stages = 4, .load_registers = 24);
TESSERA_HOPPER_CONFIG(Tile256x128, .tile_m = 256, .tile_n = 128, .consumers = 2,
                      .schedule = HopperSchedule::cooperative, .stages = 4, .load_registers = 24);
TESSERA_HOPPER_CONFIG(Tile128x192, .tile_m = 128, .tile_n = 192, .consumers = 2,
                      .schedule = HopperSchedule::cooperative, .stages = 4);
TESSERA_HOPPER_CONFIG(Tile128x144, .tile_m = 128, .tile_n = 144, .consumers = 2,
                      .schedule = HopperSchedule::cooperative, .stages = 5);
TESSERA_HOPPER_CONFIG(Tile128x128, .tile_m = 128, .tile_n = 128, .consumers = 2,
                      .schedule = HopperSchedule::cooperative, .stages = 6);
TESSERA_HOPPER_CONFIG(PingPong128x168, .tile_m = 128, .tile_n = 168, .consumers = 2,
                      .schedule = HopperSchedule::ping_pong, .stages = 5, .load_registers = 24, .store_buffers = 1);
TESSERA_HOPPER_CONFIG(PingPong128x128, .tile_m = 128, .tile_n = 128, .consumers = 2,
                      .schedule = HopperSchedule::ping_pong, .stages = 6, .load_registers = 24);
TESSERA_HOPPER_CONFIG(PingPong64x256, .tile_m = 64, .tile_n = 256, .consumers = 2,
                      .schedule = HopperSchedule::ping_pong, .stages = 4, .load_registers = 24);
TESSERA_HOPPER_CONFIG(PingPong64x192, .tile_m = 64, .tile_n = 192, .consumers = 2,
                      .schedule = HopperSchedule::ping_pong, .stages = 6);
TESSERA_HOPPER_CONFIG(PingPong64x128, .tile_m = 64, .tile_n = 128, .consumers = 2,
                      .schedule = HopperSchedule::ping_pong, .stages = 8);
TESSERA_HOPPER_CONFIG(Tile128x72, .tile_m = 128, .tile_n = 72, .consumers = 2, .schedule = HopperSchedule::cooperative,
                      .stages = 7);
TESSERA_HOPPER_CONFIG(Tile128x80, .tile_m = 128, .tile_n = 80, .consumers = 2, .schedule = HopperSchedule::cooperative,
                      .stages = 7);
TESSERA_HOPPER_CONFIG(Alternating64x64, .tile_m = 64, .tile_n = 64, .consumers = 2,
                      .schedule = HopperSchedule::alternating, .stages = 12);
TESSERA_HOPPER_CONFIG(Alternating64x32, .tile_m = 64, .tile_n = 32, .consumers = 2,
                      .schedule = HopperSchedule::alternating, .stages = 16);
TESSERA_HOPPER_CONFIG(Tile128x64, .tile_m = 128, .tile_n = 64, .consumers = 2, .schedule = HopperSchedule::cooperative,
                      .stages = 8);
// For an operand that streams from memory through all SMs: 128 of these tiles are 14336 rows.
TESSERA_HOPPER_CONFIG(Tile64x112, .tile_m = 64, .tile_n = 112, .consumers = 1, .schedule = HopperSchedule::cooperative,
                      .stages = 9);
TESSERA_HOPPER_CONFIG(Tile64x96, .tile_m = 64, .tile_n = 96, .consumers = 1, .schedule = HopperSchedule::cooperative,
                      .stages = 10);
// Two CTAs per SM, for products that last microseconds and for products that stream one operand.
TESSERA_HOPPER_CONFIG(Light64x64, .tile_m = 64, .tile_n = 64, .consumers = 1, .schedule = HopperSchedule::cooperative,
                      .stages = 6, .ctas = 2);
TESSERA_HOPPER_CONFIG(Light64x32, .tile_m = 64, .tile_n = 32, .consumers = 1, .schedule = HopperSchedule::cooperative,
                      .stages = 8, .ctas = 2);
TESSERA_HOPPER_CONFIG(Light64x16, .tile_m = 64, .tile_n = 16, .consumers = 1, .schedule = HopperSchedule::cooperative,
                      .stages = 9, .ctas = 2);

// With the fallback load. A thread can have as many bytes in flight as its registers hold, so the tiles are not the
// largest: consumers have registers to spare.
TESSERA_HOPPER_CONFIG(Copying128x192, .tile_m = 128, .tile_n = 192, .consumers = 2,
                      .schedule = HopperSchedule::cooperative, .stages = 4, .copies = true, .load_registers = 136);
TESSERA_HOPPER_CONFIG(Copying128x128, .tile_m = 128, .tile_n = 128, .consumers = 2,
                      .schedule = HopperSchedule::cooperative, .stages = 6, .copies = true, .load_registers = 120);
TESSERA_HOPPER_CONFIG(Copying64x64, .tile_m = 64, .tile_n = 64, .consumers = 1, .schedule = HopperSchedule::cooperative,
                      .stages = 6, .ctas = 2, .copies = true);
TESSERA_HOPPER_CONFIG(Copying64x16, .tile_m = 64, .tile_n = 16, .consumers = 1, .schedule = HopperSchedule::cooperative,
                      .stages = 9, .ctas = 2, .copies = true);
#undef TESSERA_HOPPER_CONFIG

}  // namespace tessera::kernels
