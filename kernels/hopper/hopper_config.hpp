#pragma once

/// The configurations of the Hopper GEMM kernel as constants: what is compiled in. What costs nothing at run time
/// (cluster shape, element type of one size, orders of A and B, raster, split of K) is an argument instead.
///
/// Words: a CTA computes a *tile* of D, (tile_m, tile_n), and walks K in *stages* of 128 bytes of each row. A
/// *consumer* is a warpgroup that multiplies and writes; one more warpgroup loads.

#include <cstdint>

#include "tessera/detail/host_device.hpp"

namespace tessera::kernels {

/// How consumers share the work.
enum class HopperSchedule : std::uint8_t {
    cooperative,  ///< each has its rows of the same tile
    ping_pong,    ///< each has a tile of its own, so that one multiplies while the other writes
    alternating,  ///< they take turns at the stages of a tile, and the first adds the other's sums to its own
};

struct HopperConfig {
    const char* name;
    int tile_m;
    int tile_n;
    int consumers;
    HopperSchedule schedule;
    int stages;
    int ctas =
        1;  // that fit on a multiprocessor: with two, the next kernel's prologue runs beside the tail of this one
    bool copies = false;      // the load warpgroup copies operands that TMA cannot address
    int load_registers = 40;  // of a thread that loads, a multiple of 8
    int store_buffers = 2;    // per consumer: of two, one is stored while the other is filled

    /// Rows of the tile that one consumer has.
    TESSERA_DETAIL_HOST_DEVICE constexpr int consumer_m() const
    {
        return schedule == HopperSchedule::cooperative ? tile_m / consumers : tile_m;
    }
    /// Consumers that take turns at the stages of a tile: their number is a multiple of this.
    TESSERA_DETAIL_HOST_DEVICE constexpr int stages_in_turn() const
    {
        return schedule == HopperSchedule::alternating ? consumers : 1;
    }
    /// Whether several clusters, or layers of one, may share a tile: not where accumulators leave no registers for it.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool shares_tiles() const
    {
        return schedule != HopperSchedule::alternating && accumulators() <= 128;
    }
    /// Accumulator registers of a consumer's thread.
    TESSERA_DETAIL_HOST_DEVICE constexpr int accumulators() const { return consumer_m() / 64 * (tile_n / 2); }
    TESSERA_DETAIL_HOST_DEVICE constexpr int threads() const { return 128 * (consumers + 1); }
    /// Whether consumers get registers of the load warpgroup: where one CTA has all 65536 and they need them.
    TESSERA_DETAIL_HOST_DEVICE constexpr bool moves_registers() const { return ctas == 1 && consumers > 1; }
    /// Registers of a consumer's thread then. They come in eights per thread.
    TESSERA_DETAIL_HOST_DEVICE constexpr int consumer_registers() const
    {
        return (65536 / 128 / 8 * 8 - 8 - load_registers) / consumers / 8 * 8;
    }
    TESSERA_DETAIL_HOST_DEVICE constexpr int stage_bytes() const { return (tile_m + tile_n) * hopper_row_bytes; }
    /// Everything: stages, store buffers, barriers, and what aligning the base to a swizzle pattern may take.
    TESSERA_DETAIL_HOST_DEVICE constexpr int shared_bytes() const
    {
        return stages * stage_bytes() + consumers * store_buffers * hopper_store_bytes + barrier_bytes;
    }

    /// Columns of D that one TMA store takes of a tile: 128 bytes of it. What remains takes one more.
    TESSERA_DETAIL_HOST_DEVICE static constexpr int store_width(int tile_n, int element_bytes)
    {
        return tile_n * element_bytes < hopper_row_bytes ? tile_n : hopper_row_bytes / element_bytes;
    }

    static constexpr int hopper_row_bytes = 128;  // of a stage: the widest swizzle pattern
    static constexpr int hopper_store_bytes = 64 * 128;
    static constexpr int barrier_bytes = 1024;
};

/// Of a multiprocessor's 228 KiB, each CTA's 1 KiB for the system is gone.
TESSERA_DETAIL_HOST_DEVICE constexpr int hopper_max_shared_bytes(int ctas) { return 228 * 1024 / ctas - 1024; }

constexpr bool is_valid(const HopperConfig& config)
{
    constexpr int other_registers = 72;  // of a consumer's thread: 128x168 has no more than that, and does not spill
    const bool tiles = config.tile_m % 64 == 0 && config.consumer_m() % 64 == 0 && config.consumer_m() > 0 &&
                       config.tile_n % 8 == 0 && config.tile_n <= 256;
    // A consumer has every second slot, in each round of the ring, and its sums fit into its store buffers.
    const bool turns = config.schedule != HopperSchedule::alternating ||
                       (config.consumers == 2 && config.stages % 2 == 0 &&
                        config.tile_m * config.tile_n * 4 <= config.store_buffers * HopperConfig::hopper_store_bytes);
    return tiles && turns && config.consumers >= 1 && config.consumers <= 2 &&
           (!config.moves_registers() || config.accumulators() + other_registers <= config.consumer_registers()) &&
           config.stages >= 3 && config.shared_bytes() <= hopper_max_shared_bytes(config.ctas) &&
           (config.ctas == 1 || config.accumulators() <= 64);
}

/// Two-level accumulation keeps a second set of accumulators: of 232 registers, two sets of 64 leave enough for the
/// rest.
TESSERA_DETAIL_HOST_DEVICE constexpr bool has_room_for_two_levels(const HopperConfig& config)
{
    return config.accumulators() <= 64;
}

#define TESSERA_HOPPER_CONFIG(NAME, ...)                                  \
    struct NAME {                                                         \
        static constexpr HopperConfig config{.name = #NAME, __VA_ARGS__}; \
    };                                                                    \
    static_assert(is_valid(NAME::config))

TESSERA_HOPPER_CONFIG(Tile128x256, .tile_m = 128, .tile_n = 256, .consumers = 2,
                      .schedule = HopperSchedule::cooperative, .stages = 4);
TESSERA_HOPPER_CONFIG(Tile256x128, .tile_m = 256, .tile_n = 128, .consumers = 2,
                      .schedule = HopperSchedule::cooperative, .stages = 4);
TESSERA_HOPPER_CONFIG(Tile128x192, .tile_m = 128, .tile_n = 192, .consumers = 2,
                      .schedule = HopperSchedule::cooperative, .stages = 4);
TESSERA_HOPPER_CONFIG(Tile128x128, .tile_m = 128, .tile_n = 128, .consumers = 2,
                      .schedule = HopperSchedule::cooperative, .stages = 6);
TESSERA_HOPPER_CONFIG(PingPong128x168, .tile_m = 128, .tile_n = 168, .consumers = 2,
                      .schedule = HopperSchedule::ping_pong, .stages = 5, .load_registers = 24, .store_buffers = 1);
TESSERA_HOPPER_CONFIG(PingPong128x128, .tile_m = 128, .tile_n = 128, .consumers = 2,
                      .schedule = HopperSchedule::ping_pong, .stages = 6);
TESSERA_HOPPER_CONFIG(PingPong64x256, .tile_m = 64, .tile_n = 256, .consumers = 2,
                      .schedule = HopperSchedule::ping_pong, .stages = 4);
TESSERA_HOPPER_CONFIG(PingPong64x128, .tile_m = 64, .tile_n = 128, .consumers = 2,
                      .schedule = HopperSchedule::ping_pong, .stages = 8);
TESSERA_HOPPER_CONFIG(Tile128x72, .tile_m = 128, .tile_n = 72, .consumers = 2, .schedule = HopperSchedule::cooperative,
                      .stages = 7);
TESSERA_HOPPER_CONFIG(Alternating64x64, .tile_m = 64, .tile_n = 64, .consumers = 2,
                      .schedule = HopperSchedule::alternating, .stages = 12);
TESSERA_HOPPER_CONFIG(Alternating64x32, .tile_m = 64, .tile_n = 32, .consumers = 2,
                      .schedule = HopperSchedule::alternating, .stages = 16);
TESSERA_HOPPER_CONFIG(Tile128x64, .tile_m = 128, .tile_n = 64, .consumers = 2, .schedule = HopperSchedule::cooperative,
                      .stages = 8);
// For one operand that streams from memory through all multiprocessors: 128 of these tiles are 14336 rows of it.
TESSERA_HOPPER_CONFIG(Tile64x112, .tile_m = 64, .tile_n = 112, .consumers = 1, .schedule = HopperSchedule::cooperative,
                      .stages = 9);
// Two to a multiprocessor, for products that are over in microseconds, and for those that stream one operand.
TESSERA_HOPPER_CONFIG(Light64x64, .tile_m = 64, .tile_n = 64, .consumers = 1, .schedule = HopperSchedule::cooperative,
                      .stages = 6, .ctas = 2);
TESSERA_HOPPER_CONFIG(Light64x32, .tile_m = 64, .tile_n = 32, .consumers = 1, .schedule = HopperSchedule::cooperative,
                      .stages = 8, .ctas = 2);
TESSERA_HOPPER_CONFIG(Light64x16, .tile_m = 64, .tile_n = 16, .consumers = 1, .schedule = HopperSchedule::cooperative,
                      .stages = 9, .ctas = 2);

// For operands that TMA cannot address. What a copying thread has in flight is what its registers hold: the tiles are
// not the largest, so that consumers can spare some.
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
