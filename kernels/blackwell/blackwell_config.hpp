#pragma once

/// The configurations of the Blackwell kernel: the constants that are compiled in. What costs nothing at run time (element
/// types of one size, majors of A and B, raster, the epilogue) is a kernel parameter instead.
///
/// Terminology: a *cluster tile* is the part of D that a cluster computes at a time. Each of its CTAs computes
/// `m_tiles` blocks of 128 rows: adjacent blocks with one CTA per instruction, interleaved ones in a CTA pair, whose
/// instruction has 256 rows, 128 per CTA. A *stage* holds one step along K: 128 bytes of each row of A and B.

#include <bit>
#include <cstdint>

#include "tessera/detail/host_device.hpp"
#include "tessera/device/cta_group.hpp"

namespace tessera::kernels {

/// How a cluster gets its next tile.
enum class Scheduling : std::uint8_t {
    one_tile,           // one cluster per tile
    static_persistent,  // as many clusters as fit; each strides through the tiles
    // Cluster launch control: one cluster per tile, but running clusters take over those not yet launched.
    launch_control,
};

/// Which warps issue loads and matrix instructions.
enum class Roles : std::uint8_t {
    shared,       // one warp does both
    specialized,  // one warp each
};

inline constexpr std::uint32_t epilogue_warps = 4;        // of a warpgroup: one per 32 lanes of tensor memory
inline constexpr std::uint32_t staging_buffers = 2;       // per epilogue warp: TMA stores one while the other is filled
inline constexpr std::uint32_t staging_bytes = 32 * 128;  // per buffer: 32 rows of 128 bytes, the widest swizzle
inline constexpr std::uint32_t clc_slots = 2;             // answers of cluster launch control in flight
inline constexpr std::uint32_t blackwell_shared_limit = 232448;  // bytes: 227 KiB, the most that a CTA can have
inline constexpr std::uint32_t barrier_reserve = 512;            // bytes for barriers, CLC answers and addresses

/// A configuration is one `constexpr` object of this type, which is the kernel's template argument. To add a tile, add
/// it below, instantiate it in a .cu file and list it in blackwell_kernels.cpp. The defaults are those of a product; the
/// rungs of examples/blackwell_ladder change them.
struct BlackwellConfig {
    const char* name;                // stable: tuning caches contain it
    CtaGroup group = CtaGroup::one;  // CTAs that execute one MMA instruction
    std::uint32_t cluster = 1;       // CTAs per cluster, along M
    std::uint32_t block_n = 128;     // columns of a tile
    std::uint32_t m_tiles = 1;       // blocks of 128 rows per CTA; they share B
    std::uint32_t stages = 0;        // depth of the ring in shared memory; 0: as many as fit
    // Blocks of 128 rows in tensor memory. With 2 * m_tiles, an epilogue overlaps the next tile.
    std::uint32_t accumulators = 2;
    std::uint32_t epilogue_groups = 1;  // warpgroups that store; with two, each stores every other block of rows
    bool copies = false;                // has the fallback load for operands that TMA cannot address
    bool swizzled = true;               // 128-byte swizzle; otherwise boxes of 16 bytes
    bool multicast = false;             // the CTAs or pairs of the cluster load a part of B each, for all
    Roles roles = Roles::specialized;   // which warps load and multiply
    Scheduling scheduling = Scheduling::launch_control;  // how a cluster gets its next tile

    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t group_size() const { return group == CtaGroup::pair ? 2 : 1; }
    /// CTAs or pairs of the cluster.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t groups() const { return cluster / group_size(); }
    /// CTAs that load a part of the same rows of B each.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t b_sharers() const { return multicast ? groups() : 1; }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t cluster_m() const { return 128 * m_tiles * cluster; }
    /// Rows of B in one CTA's shared memory; a pair splits them.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t b_rows() const { return block_n / group_size(); }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t instruction_m() const { return 128 * group_size(); }
    /// Columns of tensor memory from one accumulator to the next. An allocation has a power of two of them.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t accumulator_columns() const
    {
        std::uint32_t columns = 32;
        while (columns < block_n) {
            columns *= 2;
        }
        return columns;
    }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t tensor_memory_columns() const
    {
        return accumulators * accumulator_columns();
    }

    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t a_bytes() const  // of one block
    {
        return 128 * stage_row_bytes;
    }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t b_bytes() const { return b_rows() * stage_row_bytes; }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t stage_bytes() const { return m_tiles * a_bytes() + b_bytes(); }
    /// Returns the depth of the ring that shared memory has room for.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t most_stages() const
    {
        const std::uint32_t others = all_epilogue_warps() * staging_buffers * staging_bytes + barrier_reserve;
        return (blackwell_shared_limit - others) / stage_bytes();
    }
    /// Returns true if clusters may share a tile (stream-K).
    TESSERA_DETAIL_HOST_DEVICE constexpr bool shares_tiles() const
    {
        return scheduling == Scheduling::launch_control && !copies;
    }
    /// Floats of a cluster's sums of a tile, and counters of the warps that write them.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t partial_floats() const { return cluster_m() * block_n; }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t partial_counters() const
    {
        return cluster * m_tiles * epilogue_warps;
    }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t all_epilogue_warps() const
    {
        return epilogue_groups * epilogue_warps;
    }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t threads() const
    {
        return 32 * (copies || epilogue_groups == 2 ? 12 : 8);
    }

    /// Columns of D that one TMA store writes, of elements of 2 or 4 bytes: at most 128 bytes, and a divisor of the tile.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t store_columns(std::uint32_t element_bytes) const
    {
        std::uint32_t columns = stage_row_bytes / element_bytes;
        while (block_n % columns != 0) {
            columns /= 2;
        }
        return columns;
    }

    static constexpr std::uint32_t stage_row_bytes = 128;  // the widest swizzle's span: 64 elements of 16 bits
};

/// Returns the configuration with as many stages as fit, unless it has a number of its own.
constexpr BlackwellConfig with_stages(BlackwellConfig config)
{
    config.stages = config.stages == 0 ? config.most_stages() : config.stages;
    return config;
}

/// Returns true if the kernel supports `config` and it fits in shared and tensor memory.
constexpr bool is_valid(const BlackwellConfig& config)
{
    const bool pair = config.group == CtaGroup::pair;
    const bool cluster = pair ? config.cluster == 2 || (config.cluster == 4 && config.multicast)
                              : config.cluster >= 1 && config.cluster <= 8;
    const bool shapes = config.block_n % (pair ? 32 : 16) == 0 && config.block_n <= 256;
    const bool multicast = !config.multicast || (config.groups() == 2 && config.b_rows() % 128 == 0);
    const bool roles = config.roles == Roles::specialized || (!pair && config.scheduling == Scheduling::one_tile &&
                                                              config.m_tiles == 1 && config.cluster == 1);
    const bool columns = config.tensor_memory_columns() <= 512 && config.accumulators >= config.m_tiles &&
                         config.accumulators % config.m_tiles == 0 && std::has_single_bit(config.accumulators);
    // The fallback load copies 64 rows at a time.
    const bool copies = !config.copies || (config.b_rows() % 64 == 0 && config.groups() == 1);
    // The second epilogue warpgroup has the warps that would copy, and the accumulators that the first one skips.
    const bool epilogue =
        config.epilogue_groups == 1 || (config.epilogue_groups == 2 && !config.copies && config.m_tiles == 2);
    return cluster && shapes && multicast && roles && columns && copies && epilogue && config.stages >= 1 &&
           config.stages <= config.most_stages();
}

#define TESSERA_BLACKWELL_CONFIG(NAME, ...)                                                  \
    struct NAME {                                                                            \
        static constexpr BlackwellConfig config = with_stages({.name = #NAME, __VA_ARGS__}); \
    };                                                                                       \
    static_assert(is_valid(NAME::config), "does not fit into shared or tensor memory, or is no form of the kernel")

TESSERA_BLACKWELL_CONFIG(Tile128x16, .block_n = 16);
TESSERA_BLACKWELL_CONFIG(Tile128x32, .block_n = 32);
TESSERA_BLACKWELL_CONFIG(Tile128x64, .block_n = 64);
TESSERA_BLACKWELL_CONFIG(Tile128x96, .block_n = 96);
TESSERA_BLACKWELL_CONFIG(Tile128x128, .block_n = 128);
TESSERA_BLACKWELL_CONFIG(Tile128x192, .block_n = 192);
TESSERA_BLACKWELL_CONFIG(Tile128x256, .block_n = 256);
// Two CTAs execute one instruction of 256 rows. Each holds half of B, and reads half as much of it.
TESSERA_BLACKWELL_CONFIG(Pair256x64, .group = CtaGroup::pair, .cluster = 2, .block_n = 64);
TESSERA_BLACKWELL_CONFIG(Pair256x96, .group = CtaGroup::pair, .cluster = 2, .block_n = 96);
TESSERA_BLACKWELL_CONFIG(Pair256x128, .group = CtaGroup::pair, .cluster = 2, .block_n = 128);
TESSERA_BLACKWELL_CONFIG(Pair256x192, .group = CtaGroup::pair, .cluster = 2, .block_n = 192);
TESSERA_BLACKWELL_CONFIG(Pair256x256, .group = CtaGroup::pair, .cluster = 2, .block_n = 256);
// Two blocks of rows share a stage of B: twice the work for 3/2 of the bytes. Tensor memory then has no room to overlap
// the epilogue with the next tile, so each block has an epilogue warpgroup.
TESSERA_BLACKWELL_CONFIG(Pair512x256, .group = CtaGroup::pair, .cluster = 2, .block_n = 256, .m_tiles = 2,
                         .epilogue_groups = 2);
// Two pairs share B: each of their CTAs loads half of its rows for both.
TESSERA_BLACKWELL_CONFIG(Quad512x256, .group = CtaGroup::pair, .cluster = 4, .block_n = 256, .multicast = true);
// With the fallback load.
TESSERA_BLACKWELL_CONFIG(Copying128x128, .block_n = 128, .copies = true);
TESSERA_BLACKWELL_CONFIG(CopyingPair256x256, .group = CtaGroup::pair, .cluster = 2, .block_n = 256, .copies = true);

}  // namespace tessera::kernels
