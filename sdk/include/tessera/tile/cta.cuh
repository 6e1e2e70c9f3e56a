#pragma once

/// @file
/// @ingroup tile_programs
/// @brief `Cta`: what a program gets to know of the CTA that runs it.
///
/// A program runs several times at once, in one CTA: threads that load tiles run it for its loads, threads that compute for its
/// arithmetic, and the host runs it before the launch to learn what it needs. What a thread does not do compiles to nothing.

#include "tessera/detail/language.hpp"

#include <cuda/ptx>

#include <cstddef>
#include <cstdint>

#include "tessera/device/barrier.cuh"
#include "tessera/device/cluster.cuh"
#include "tessera/device/tile_raster.hpp"
#include "tessera/device/warp.cuh"
#include "tessera/tile/hints.hpp"
#include "tessera/tile/layout.cuh"
#include "tessera/tile/plan.hpp"
#include "tessera/tile/tile.cuh"

namespace tessera::tile {

namespace detail {

/// What a thread of a CTA, or the host, does of a program.
enum class Role : std::uint8_t {
    all,       // loads and computes
    load,      // asks TMA for stages
    multiply,  // issues the products of tcgen05
    compute,   // reads stages, or sums in tensor memory, and computes
    plan       // the host: counts what will be needed
};

/// @tparam Multiplies  the instructions
/// @tparam Part        what the thread does
/// @tparam Wishes      the program's hints
/// @tparam Ctas        of a cluster, which loads together. On tcgen05, two at a time are a pair, which multiplies together
/// @tparam ByTma       of a role that does all: TMA fills the stages
template <Instructions Multiplies, Role Part, Hints Wishes, int Ctas = 1, bool ByTma = false>
struct Machine {
    static constexpr Instructions instructions = Multiplies;
    static constexpr Role role = Part;
    static constexpr bool is_planned = Part == Role::plan;
    static constexpr bool computes = Part == Role::all || Part == Role::compute;
    static constexpr int ctas = Ctas;
    /// CTAs that multiply together.
    static constexpr int multiplying_ctas = Multiplies == Instructions::tcgen05 && Ctas > 1 ? 2 : 1;
    /// Places that the CTAs of a cluster have at once: an array of these rows and columns. Those of a pair are in one column.
    static constexpr int group_columns = Ctas > multiplying_ctas ? Wishes.cluster_columns : 1;
    static constexpr int group_rows = Ctas / group_columns;
    static_assert(group_rows >= multiplying_ctas);
    static constexpr bool by_tma = ByTma;
    static constexpr bool whole_tiles = Wishes.whole_tiles;
    static constexpr int warps_m = Multiplies == Instructions::mma_sync ? Wishes.warps_m
                                   : Multiplies == Instructions::wgmma  ? 4 * Wishes.warpgroups
                                                                        : 4;
    static constexpr int warps_n = Multiplies == Instructions::mma_sync ? Wishes.warps_n
                                   : Multiplies == Instructions::wgmma  ? 1
                                                                        : Wishes.warpgroups;
    static constexpr int threads = 32 * warps_m * warps_n;  // that compute
    /// Warps that do not compute: one that loads, and on tcgen05 one that multiplies.
    static constexpr int other_warps = Multiplies == Instructions::mma_sync ? 0
                                       : Multiplies == Instructions::wgmma  ? 1
                                                                            : 2;
    static constexpr int all_threads = threads + 32 * other_warps;
    static_assert(
        warps_m >= 1 && warps_n >= 1 && threads <= 1024 - 32,
        "tessera: a program's CTA computes with 32 to 992 threads: its hints give 32 * warps_m * warps_n, and on "
        "Hopper and Blackwell 128 * warpgroups");
    static_assert(warps_m < 4 || warps_m % 4 == 0, "tessera: hints have 1, 2, 3 or a multiple of 4 warps_m");
    static_assert(Wishes.cluster == 0 || (is_power_of_two(Wishes.cluster) && Wishes.cluster <= 8),
                  "tessera: hints have clusters of 1, 2, 4 or 8 CTAs, or 0 for the library's choice");
    static_assert(is_power_of_two(Wishes.cluster_columns) &&
                      (Wishes.cluster_columns == 1 || Wishes.cluster_columns <= Wishes.cluster),
                  "tessera: hints have cluster_columns that divide the CTAs of a cluster");
    static_assert(Wishes.stages == 0 || (Wishes.stages >= 2 && Wishes.stages <= most_stages),
                  "tessera: hints have 2 to 8 stages, or 0 for as many as fit into shared memory");
};

/// Stops the kernel: it is in a branch that the plan did not see, with what the chosen instructions do not have.
TESSERA_TILE void refuse_branch()
{
#ifdef __CUDA_ARCH__
    __trap();
#endif
}

/// Which of the two CTAs of a pair the calling thread is in.
TESSERA_TILE std::uint32_t cta_of_pair()
{
#ifdef __CUDA_ARCH__
    return cuda::ptx::get_sreg_cluster_ctarank() & 1U;
#else
    return 0;
#endif
}

/// The barriers of a CTA whose stages TMA fills.
struct TileBarriers {
    BarrierWord<FilledByTma> full[most_stages];
    BarrierWord<FreedByThreads> empty[most_stages];
    BarrierWord<FilledByTma> held_full[most_held];
    BarrierWord<FreedByThreads> held_empty[most_held];
};

/// What a thread knows of the CTA's ring.
struct RingState {
    std::uint32_t shared = 0;       // where stages begin, as a shared address
    std::uint32_t stage_bytes = 0;  // from one to the next
    int stages = 0;
    TileBarriers* barriers = nullptr;
    int slot = 0;
    std::uint32_t parity = 0;       // of the slot's next completion
    int unreleased = -1;            // a slot that the tensor core may still read
    bool has_products = false;      // wgmma may still be under way
    int warpgroup = 0;              // the calling thread's, on wgmma
    std::uint32_t held = 0;         // where the next operand goes that stays for a work tile, as a shared address
    int held_count = 0;             // how many there are now
    std::uint32_t held_parity = 0;  // bit i: of the i-th one's next completion
    const BarriersPublished* published = nullptr;
    const BarriersPublishedToCluster* published_to_cluster = nullptr;  // of a cluster that loads together
    const TileRaster* groups = nullptr;  // the order of groups of places, for a pair or a cluster of CTAs
};

__device__ __forceinline__ void advance(RingState& ring)
{
    if (++ring.slot == ring.stages) {
        ring.slot = 0;
        ring.parity ^= 1U;
    }
}

__device__ __forceinline__ std::uint32_t slot_address(const RingState& ring)
{
    return ring.shared + static_cast<std::uint32_t>(ring.slot) * ring.stage_bytes;
}

/// Waits until the ring's next slot may be filled, for the whole warp that loads.
__device__ __forceinline__ void wait_until_empty(const RingState& ring)
{
    Barrier(ring.barriers->empty[ring.slot], *ring.published).wait(static_cast<PhaseParity>(ring.parity ^ 1U));
}

/// Waits until the ring's next slot is filled.
__device__ __forceinline__ void wait_until_full(const RingState& ring)
{
    Barrier(ring.barriers->full[ring.slot], *ring.published).wait(static_cast<PhaseParity>(ring.parity));
}

/// CTAs that fill parts of a CTA's slot: those of its row and of its column in the cluster.
template <class Machine>
inline constexpr int ctas_that_fill = Machine::group_rows + Machine::group_columns - 1;

/// Arrives at a slot's barrier in CTAs that fill parts of each other's slots, from number `First` on; number 0 is the calling CTA.
/// Called by a whole warp.
template <class Machine, int First, class Kind>
__device__ __forceinline__ void arrive_in_cluster(const RingState& ring, const Barrier<Kind>& barrier)
{
    const ClusterGrid cluster(Machine::group_rows, Machine::group_columns);
    const int index = lane();
    if (index < First || index >= ctas_that_fill<Machine>) {
        return;
    }
    const bool in_column = index < Machine::group_rows;
    const int to_row = in_column ? index : 0;
    const int to_column = in_column ? 0 : index - Machine::group_rows + 1;
    barrier.arrive_at(ring.published_to_cluster->ready(
        cluster.at((cluster.row() + static_cast<std::uint32_t>(to_row)) % Machine::group_rows,
                   (cluster.column() + static_cast<std::uint32_t>(to_column)) % Machine::group_columns)));
}

/// Frees a slot for the calling warp: for each CTA that fills a part of it.
template <class Machine>
__device__ __forceinline__ void release(const RingState& ring, int slot)
{
    __syncwarp();
    const Barrier empty(ring.barriers->empty[slot], *ring.published);
    if constexpr (Machine::ctas > 1) {
        arrive_in_cluster<Machine, 0>(ring, empty);
    } else if (elect_one()) {
        empty.arrive();
    }
}

template <class Machine>
struct Layouts {
    template <class Layout>
    using Of = std::conditional_t<Machine::computes, Layout, Absent<Layout>>;
};

/// The layout of a tile that a program makes: that of sums if they can have the shape, or of a vector beside them.
template <class Machine, int Rows, int Columns>
struct register_layout {
    static constexpr bool is_fragments = Rows % (16 * Machine::warps_m) == 0 && Columns % (8 * Machine::warps_n) == 0;
    using Present =
        std::conditional_t<is_fragments,
                           Fragments<is_fragments ? Rows : 16 * Machine::warps_m,
                                     is_fragments ? Columns : 8 * Machine::warps_n, Machine::warps_m, Machine::warps_n>,
                           Striped<Rows, Columns, Machine::threads>>;
    using type = typename Layouts<Machine>::template Of<Present>;
};
template <class Machine, int Rows>
    requires(Machine::instructions != Instructions::tcgen05 && Rows > 1 && Rows % (16 * Machine::warps_m) == 0)
struct register_layout<Machine, Rows, 1> {
    using type = typename Layouts<Machine>::template Of<FragmentRows<Rows, Machine::warps_m, Machine::warps_n>>;
};
template <class Machine, int Columns>
    requires(Machine::instructions != Instructions::tcgen05 && Columns > 1 && Columns % (8 * Machine::warps_n) == 0)
struct register_layout<Machine, 1, Columns> {
    using type = typename Layouts<Machine>::template Of<FragmentColumns<Columns, Machine::warps_m, Machine::warps_n>>;
};

}  // namespace detail

/// The CTA that runs a program. A program takes it as `auto cta` and hands it on.
template <class MachineType>
class Cta {
public:
    using Machine = MachineType;  ///< for the library

    /// For the library.
    TESSERA_TILE explicit Cta(detail::RingState& ring) : ring_(&ring) {}
    /// For the library.
    TESSERA_TILE detail::RingState& ring() const { return *ring_; }

private:
    detail::RingState* ring_;
};

}  // namespace tessera::tile
