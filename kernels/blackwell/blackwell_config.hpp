#pragma once

/// The rungs of the Blackwell ladder as constants: a `BlackwellConfig` makes the one kernel into a rung.
///
/// Words: a *cluster tile* is what a cluster computes of D at once. Each of its CTAs computes `m_tiles` blocks of 128
/// rows, one below the other for one CTA, a pair's interleaved: an instruction of a pair has 256 rows, 128 in each CTA.
/// A *stage* holds what one step along K needs: 128 bytes of each row of A and B.

#include <cstdint>

#include "tessera/detail/host_device.hpp"
#include "tessera/device/cta_group.hpp"

namespace tessera::kernels {

/// How a cluster finds its next tile.
enum class Scheduling : std::uint8_t {
    one_tile,           // one cluster for each tile
    static_persistent,  // as many clusters as fit; each goes on in strides
    launch_control,     // one cluster for each tile, but running ones take over those that wait
};

/// Who issues loads and matrix instructions.
enum class Roles : std::uint8_t {
    shared,       // one thread does both
    specialized,  // a warp for each
};

struct BlackwellConfig {
    CtaGroup group = CtaGroup::one;
    std::uint32_t cluster = 1;  // CTAs, along M
    std::uint32_t block_n = 128;
    std::uint32_t m_tiles = 1;  // blocks of 128 rows per CTA, which share B
    std::uint32_t stages = 1;
    std::uint32_t accumulators = 1;  // blocks in tensor memory; twice m_tiles overlap the epilogue with the next tile
    bool swizzled = true;
    bool multicast = false;  // CTAs of a cluster load a part of B each, for all
    Roles roles = Roles::specialized;
    Scheduling scheduling = Scheduling::one_tile;

    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t group_size() const { return group == CtaGroup::pair ? 2 : 1; }
    TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t cluster_m() const { return 128 * m_tiles * cluster; }
    /// Rows of B in the shared memory of one CTA: a pair shares them.
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

inline constexpr std::uint32_t epilogue_warps = 4;        // one for each 32 lanes of tensor memory
inline constexpr std::uint32_t staging_buffers = 2;       // per epilogue warp: one is filled while the other is stored
inline constexpr std::uint32_t staging_bytes = 32 * 128;  // 32 rows, as wide as the widest swizzle
inline constexpr std::uint32_t clc_slots = 2;
inline constexpr std::uint32_t blackwell_shared_limit = 232448;  // bytes: 227 KiB, what a CTA can have
inline constexpr std::uint32_t barrier_reserve = 512;            // bytes for barriers, answers and addresses

/// Whether the kernel is right for `config`, and fits; the rungs below assert it.
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

/// The tensor core with one tile per CTA: the operands come in boxes of 16 bytes, each wait is for one step along K.
struct BlackwellTiled {
    static constexpr BlackwellConfig config{.swizzled = false, .roles = Roles::shared};
};
/// A swizzle lets one box be 128 bytes wide: 8 times fewer loads, and none of them meets a bank conflict.
struct BlackwellSwizzled {
    static constexpr BlackwellConfig config{.roles = Roles::shared};
};
/// Several stages: loads run ahead of the matrix instructions.
struct BlackwellPipelined {
    static constexpr BlackwellConfig config{.stages = 6, .roles = Roles::shared};
};
/// A warp that only loads and one that only multiplies: neither waits for the other's turn.
struct BlackwellWarpSpecialized {
    static constexpr BlackwellConfig config{.stages = 6};
};
/// A CTA does many tiles: the set-up is paid once, and a second accumulator lets one tile be stored under the next
/// one's products.
struct BlackwellPersistent {
    static constexpr BlackwellConfig config{
        .stages = 6, .accumulators = 2, .scheduling = Scheduling::static_persistent};
};
/// Tiles are handed out by the hardware: no CTA is left with more work than others.
struct BlackwellClc {
    static constexpr BlackwellConfig config{.stages = 6, .accumulators = 2, .scheduling = Scheduling::launch_control};
};
/// Two CTAs load one half of B each, for both: a quarter less traffic from L2.
struct BlackwellClcMulticast {
    static constexpr BlackwellConfig config{
        .cluster = 2, .stages = 6, .accumulators = 2, .multicast = true, .scheduling = Scheduling::launch_control};
};
/// Two CTAs execute one instruction of 256 rows: each holds half of B, and reads half as much of it.
struct BlackwellCtaPair {
    static constexpr BlackwellConfig config{.group = CtaGroup::pair,
                                            .cluster = 2,
                                            .stages = 4,
                                            .accumulators = 2,
                                            .scheduling = Scheduling::launch_control};
};
/// 256 columns: twice the products for 4/3 of the bytes, and all of tensor memory.
struct BlackwellCtaPair256 {
    static constexpr BlackwellConfig config{.group = CtaGroup::pair,
                                            .cluster = 2,
                                            .block_n = 256,
                                            .stages = 6,
                                            .accumulators = 2,
                                            .scheduling = Scheduling::launch_control};
};
/// Two blocks of rows share a stage of B: twice the products for 3/2 of the bytes, at the price of the overlap of a
/// tile's epilogue with the next tile.
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
