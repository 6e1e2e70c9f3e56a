#pragma once

/// The configurations of the Blackwell kernel. There is one kernel; a constexpr `BlackwellConfig` makes it a rung of
/// the ladder (docs/blackwell-ladder.md).
///
/// Terminology: a *cluster tile* is the part of D that a cluster computes at a time. Each of its CTAs computes
/// `m_tiles` blocks of 128 rows: adjacent blocks with one CTA per instruction, interleaved ones in a CTA pair, whose
/// instruction has 256 rows, 128 per CTA. A *stage* holds one step along K: 128 bytes of each row of A and B.

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

struct BlackwellConfig {
    CtaGroup group = CtaGroup::one;  // CTAs that execute one MMA instruction
    std::uint32_t cluster = 1;       // CTAs per cluster, along M
    std::uint32_t block_n = 128;     // columns of a tile
    std::uint32_t m_tiles = 1;       // blocks of 128 rows per CTA; they share B
    std::uint32_t stages = 1;        // depth of the ring in shared memory
    // Blocks of 128 rows in tensor memory. With 2 * m_tiles, an epilogue overlaps the next tile.
    std::uint32_t accumulators = 1;
    bool swizzled = true;                          // 128-byte swizzle; otherwise boxes of 16 bytes
    bool multicast = false;                        // each CTA of the cluster loads a part of B for all
    Roles roles = Roles::specialized;              // which warps load and multiply
    Scheduling scheduling = Scheduling::one_tile;  // how a cluster gets its next tile

    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t group_size() const { return group == CtaGroup::pair ? 2 : 1; }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t cluster_m() const { return 128 * m_tiles * cluster; }
    /// Rows of B in one CTA's shared memory; a pair splits them.
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t b_rows() const { return block_n / group_size(); }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t instruction_m() const { return 128 * group_size(); }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t tensor_memory_columns() const { return accumulators * block_n; }

    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t a_bytes() const
    {
        return 128 * stage_row_bytes;
    }  // of one block
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t b_bytes() const { return b_rows() * stage_row_bytes; }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t stage_bytes() const { return m_tiles * a_bytes() + b_bytes(); }

    static constexpr std::uint32_t stage_row_bytes = 128;  // the widest swizzle's span: 64 elements of 16 bits
};

inline constexpr std::uint32_t epilogue_warps = 4;        // one per 32 lanes of tensor memory
inline constexpr std::uint32_t staging_buffers = 2;       // per epilogue warp: TMA stores one while the other is filled
inline constexpr std::uint32_t staging_bytes = 32 * 128;  // per buffer: 32 rows of 128 bytes, the widest swizzle
inline constexpr std::uint32_t clc_slots = 2;             // answers of cluster launch control in flight
inline constexpr std::uint32_t blackwell_shared_limit = 232448;  // bytes: 227 KiB, the most that a CTA can have
inline constexpr std::uint32_t barrier_reserve = 512;            // bytes for barriers, CLC answers and addresses

/// Returns true if the kernel supports `config` and it fits in shared and tensor memory. All rungs below assert it.
constexpr bool is_valid(const BlackwellConfig& config)
{
    const bool pair = config.group == CtaGroup::pair;
    const bool cluster = pair ? config.cluster == 2 : config.cluster >= 1 && config.cluster <= 8;
    const bool shapes = config.block_n % 64 == 0 && config.block_n <= 256 && config.b_rows() % 64 == 0;
    const bool multicast = !config.multicast || (!pair && config.cluster == 2);
    const bool roles = config.roles == Roles::specialized || (!pair && config.scheduling == Scheduling::one_tile &&
                                                              config.m_tiles == 1 && config.cluster == 1);
    const bool columns = config.tensor_memory_columns() <= 512 && config.accumulators >= config.m_tiles &&
                         config.accumulators % config.m_tiles == 0;
    const std::uint32_t shared =
        config.stages * config.stage_bytes() + epilogue_warps * staging_buffers * staging_bytes + barrier_reserve;
    return cluster && shapes && multicast && roles && columns && config.stages >= 1 && shared <= blackwell_shared_limit;
}

/// The first tensor-core rung: one tile per CTA. Operands arrive in boxes of 16 bytes; each K step waits for its loads.
struct BlackwellTiled {
    static constexpr BlackwellConfig config{.swizzled = false, .roles = Roles::shared};
};
/// With a swizzle, one box is 128 bytes wide: 8 times fewer loads and no bank conflicts.
struct BlackwellSwizzled {
    static constexpr BlackwellConfig config{.roles = Roles::shared};
};
/// Several stages: loads run ahead of the MMAs.
struct BlackwellPipelined {
    static constexpr BlackwellConfig config{.stages = 6, .roles = Roles::shared};
};
/// One warp only loads and one only issues MMAs: neither waits for the other's turn.
struct BlackwellWarpSpecialized {
    static constexpr BlackwellConfig config{.stages = 6};
};
/// A CTA computes many tiles. The set-up is paid once, and a second accumulator lets the epilogue of one tile overlap
/// the MMAs of the next.
struct BlackwellPersistent {
    static constexpr BlackwellConfig config{
        .stages = 6, .accumulators = 2, .scheduling = Scheduling::static_persistent};
};
/// The hardware hands out tiles as clusters become free, instead of a fixed stride.
struct BlackwellClc {
    static constexpr BlackwellConfig config{.stages = 6, .accumulators = 2, .scheduling = Scheduling::launch_control};
};
/// Two CTAs each load one half of B for both: a quarter less L2 traffic.
struct BlackwellClcMulticast {
    static constexpr BlackwellConfig config{
        .cluster = 2, .stages = 6, .accumulators = 2, .multicast = true, .scheduling = Scheduling::launch_control};
};
/// Two CTAs execute one instruction of 256 rows. Each holds half of B, and reads half as much of it.
struct BlackwellCtaPair {
    static constexpr BlackwellConfig config{.group = CtaGroup::pair,
                                            .cluster = 2,
                                            .stages = 4,
                                            .accumulators = 2,
                                            .scheduling = Scheduling::launch_control};
};
/// 256 columns: twice the work for 4/3 of the bytes. Both accumulators fill tensor memory.
struct BlackwellCtaPair256 {
    static constexpr BlackwellConfig config{.group = CtaGroup::pair,
                                            .cluster = 2,
                                            .block_n = 256,
                                            .stages = 6,
                                            .accumulators = 2,
                                            .scheduling = Scheduling::launch_control};
};
/// Two blocks of rows share a stage of B: twice the work for 3/2 of the bytes. Tensor memory then has no room to
/// overlap the epilogue with the next tile.
struct BlackwellCtaPair512 {
    static constexpr BlackwellConfig config{.group = CtaGroup::pair,
                                            .cluster = 2,
                                            .block_n = 256,
                                            .m_tiles = 2,
                                            .stages = 4,
                                            .accumulators = 2,
                                            .scheduling = Scheduling::launch_control};
};

static_assert(is_valid(BlackwellTiled::config) && is_valid(BlackwellSwizzled::config) &&
                  is_valid(BlackwellPipelined::config) && is_valid(BlackwellWarpSpecialized::config) &&
                  is_valid(BlackwellPersistent::config) && is_valid(BlackwellClc::config) &&
                  is_valid(BlackwellClcMulticast::config) && is_valid(BlackwellCtaPair::config) &&
                  is_valid(BlackwellCtaPair256::config) && is_valid(BlackwellCtaPair512::config),
              "a rung does not fit into shared or tensor memory, or is not a form of the one kernel");

}  // namespace tessera::kernels
