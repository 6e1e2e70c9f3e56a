#pragma once

/// The ten rungs of the Blackwell ladder: configurations of the library's one kernel, each with one idea more than the rung
/// before it (docs/blackwell-ladder.md). All give the same bits.

#include <span>

#include "kernels/blackwell/blackwell_kernels.hpp"

namespace blackwell_ladder {

using tessera::CtaGroup;
using tessera::kernels::BlackwellConfig;
using tessera::kernels::Roles;
using tessera::kernels::Scheduling;

/// One tile per CTA. Operands arrive in boxes of 16 bytes; each K step waits for its loads.
struct Tiled {
    static constexpr BlackwellConfig config{.name = "tiled",
                                            .stages = 1,
                                            .accumulators = 1,
                                            .swizzled = false,
                                            .roles = Roles::shared,
                                            .scheduling = Scheduling::one_tile};
};
/// With a swizzle, one box is 128 bytes wide: 8 times fewer loads and no bank conflicts.
struct Swizzled {
    static constexpr BlackwellConfig config{
        .name = "swizzled", .stages = 1, .accumulators = 1, .roles = Roles::shared, .scheduling = Scheduling::one_tile};
};
/// Several stages: loads run ahead of the MMAs.
struct Pipelined {
    static constexpr BlackwellConfig config{.name = "pipelined",
                                            .stages = 6,
                                            .accumulators = 1,
                                            .roles = Roles::shared,
                                            .scheduling = Scheduling::one_tile};
};
/// One warp only loads and one only issues MMAs: neither waits for the other's turn.
struct WarpSpecialized {
    static constexpr BlackwellConfig config{
        .name = "warp_specialized", .stages = 6, .accumulators = 1, .scheduling = Scheduling::one_tile};
};
/// A CTA computes many tiles. The set-up is paid once, and a second accumulator lets the epilogue of one tile overlap
/// the MMAs of the next.
struct Persistent {
    static constexpr BlackwellConfig config{
        .name = "persistent", .stages = 6, .scheduling = Scheduling::static_persistent};
};
/// The hardware hands out tiles as clusters become free, instead of a fixed stride.
struct Clc {
    static constexpr BlackwellConfig config{.name = "clc", .stages = 6};
};
/// Two CTAs each load one half of B for both: a quarter less L2 traffic.
struct ClcMulticast {
    static constexpr BlackwellConfig config{.name = "clc_multicast", .cluster = 2, .stages = 6, .multicast = true};
};
/// Two CTAs execute one instruction of 256 rows. Each holds half of B, and reads half as much of it.
struct CtaPair {
    static constexpr BlackwellConfig config{.name = "cta_pair", .group = CtaGroup::pair, .cluster = 2, .stages = 4};
};
/// 256 columns: twice the work for 4/3 of the bytes. Both accumulators fill tensor memory.
struct CtaPair256 {
    static constexpr BlackwellConfig config{
        .name = "cta_pair_256", .group = CtaGroup::pair, .cluster = 2, .block_n = 256, .stages = 6};
};
/// Two blocks of rows share a stage of B: twice the work for 3/2 of the bytes. Tensor memory then has no room to
/// overlap the epilogue with the next tile.
struct CtaPair512 {
    static constexpr BlackwellConfig config{
        .name = "cta_pair_512", .group = CtaGroup::pair, .cluster = 2, .block_n = 256, .m_tiles = 2, .stages = 4};
};

/// Returns the rungs for bf16, the simplest first. Empty if this build has no code for compute capability 10.
std::span<const tessera::kernels::BlackwellKernel> rungs();

}  // namespace blackwell_ladder
