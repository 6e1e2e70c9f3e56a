#pragma once

/// @file
/// @ingroup tile_programs
/// @brief Tensor memory of a tile program: slots of sums, and who may use one. Private to tessera/tile.
///
/// The role that multiplies and the roles that compute run the same program, so each knows without a word where in it the other
/// will be. A slot passes from one to the other at the same operations of both:
///
///   operation            role that multiplies                     roles that compute
///   first mma            waits for `free`, and issues products    (stores values that replaced the sums, arrives at `written`)
///   sums are read        commits to `complete`                    wait for `complete`, load, arrive at `free`
///
/// A first mma is one of a slot that was just taken, or since its sums were read. Each reading follows an mma, and each first mma a
/// reading: one bit per slot counts both. A tile of registers that is multiplied takes a slot, too; it is `complete` when it was read.

#include "tessera/detail/language.hpp"

#include <cstdint>

#include "tessera/detail/trap.hpp"
#include "tessera/device/barrier.cuh"
#include "tessera/device/cluster.cuh"
#include "tessera/device/mma.cuh"
#include "tessera/device/tmem.cuh"
#include "tessera/device/tmem_fragments.cuh"
#include "tessera/tile/cta.cuh"
#include "tessera/tile/exchange.cuh"
#include "tessera/tile/lane_fragments.cuh"
#include "tessera/tile/tcgen05_plan.hpp"

namespace tessera::tile::detail {

/// The barriers of a CTA whose sums are in tensor memory. Those that are filled or freed by both CTAs of a pair are the first CTA's.
struct Tcgen05Barriers {
    BarrierWord<FilledByTma> full[most_stages];
    BarrierWord<FreedByTensorCore> empty[most_stages];
    BarrierWord<FilledByTma> held_full[most_held];
    BarrierWord<FreedByTensorCore> held_empty[most_held];
    BarrierWord<AccumulatorFull> complete[most_slots];
    BarrierWord<AccumulatorEmpty> free[most_slots];
    BarrierWord<FilledByThreads> written[most_slots];
    TmemSlot tensor_memory;
};
static_assert(sizeof(Tcgen05Barriers) <= bytes_of_tcgen05_barriers);

/// What a thread of such a CTA knows of it.
template <CtaGroup Group>
struct Tcgen05State : RingState {
    using Memory = Tmem<Allocated, tensor_memory_columns, Group>;
    /// A pair's barriers are also used by the peer.
    using Published = std::conditional_t<Group == CtaGroup::pair, BarriersPublishedToCluster, BarriersPublished>;

    Tcgen05Barriers* words = nullptr;
    const Memory* memory = nullptr;
    const Published* visible = nullptr;
    std::uint32_t slot_columns = 0;
    int slots = most_slots;
    int next_slot = 0;
    // Bit i is of slot i.
    std::uint32_t live = 0;     // has sums
    std::uint32_t pending = 0;  // products whose sums nobody read: committed, and not awaited
    std::uint32_t phases = 0;   // parity of the next completion of `complete` and `free`
    std::uint32_t written = 0;  // parity of the next completion of `written`
};

template <class Machine>
inline constexpr CtaGroup group_of = Machine::multiplying_ctas == 2 ? CtaGroup::pair : CtaGroup::one;
template <class Machine>
using StateOf = Tcgen05State<group_of<Machine>>;

template <class Machine>
TESSERA_TILE StateOf<Machine>& state_of(RingState& ring)
{
    return static_cast<StateOf<Machine>&>(ring);
}

__device__ __forceinline__ PhaseParity parity_of(std::uint32_t bits, int slot)
{
    return static_cast<PhaseParity>(bits >> slot & 1U);
}
__device__ __forceinline__ PhaseParity parity_before(std::uint32_t bits, int slot)
{
    return static_cast<PhaseParity>((bits >> slot & 1U) ^ 1U);
}

/// The columns that a tile has in tensor memory: its own, for each 128 rows.
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t columns_of_slot(int rows, int columns)
{
    return static_cast<std::uint32_t>(largest(rows / 128, 1) * columns);
}

/// The first column of a slot that was taken for as many columns, from the allocation's on.
template <std::uint32_t Columns, CtaGroup Group>
__device__ __forceinline__ std::uint32_t first_column(const Tcgen05State<Group>& state, int slot)
{
    const std::uint32_t first = static_cast<std::uint32_t>(slot) * state.slot_columns;
    __builtin_assume(first <= tensor_memory_columns - Columns);  // the launch divides them so, and `take_slot` checks
    return first;
}
template <CtaGroup Group>
__device__ __forceinline__ std::uint32_t slot_address(const Tcgen05State<Group>& state, int slot)
{
    constexpr std::uint32_t least = 32;
    return state.memory->template columns_from<least>(first_column<least>(state, slot)).address();
}

/// Commits what the elected thread has issued to a barrier; a pair's to those of both CTAs. Called by the whole warp.
template <CtaGroup Group, class Kind>
__device__ __forceinline__ void commit_to(const Tcgen05State<Group>& state, BarrierWord<Kind>& word)
{
    const auto issued = state.memory->template accumulator<32>(0);  // says whose the products are
    if (elect_one()) {
        if constexpr (Group == CtaGroup::pair) {
            commit(issued, Barrier(word, *state.visible), state.visible->ready(ClusterGrid::my_pair()));
        } else {
            commit(issued, Barrier(word, *state.visible));
        }
    }
    __syncwarp();
}

/// The same to the barriers of all CTAs of the cluster, which load for each other.
template <class Machine, class Kind>
__device__ __forceinline__ void commit_to_cluster(const StateOf<Machine>& state, BarrierWord<Kind>& word)
{
    if constexpr (Machine::ctas == Machine::multiplying_ctas) {
        commit_to(state, word);
    } else {
        const auto issued = state.memory->template accumulator<32>(0);
        if (elect_one()) {
            const ClusterGrid one_column(Machine::ctas, 1);
            commit(issued, Barrier(word, *state.visible), state.visible->ready(one_column.my_column()));
        }
        __syncwarp();
    }
}

/// Arrives for the calling warp at a barrier of the CTA whose thread multiplies.
template <CtaGroup Group, class Kind>
__device__ __forceinline__ void arrive_for_warp(const Tcgen05State<Group>& state, BarrierWord<Kind>& word)
{
    tcgen05_fence_before_sync();
    __syncwarp();
    if (elect_one()) {
        if constexpr (Group == CtaGroup::pair) {
            tessera::detail::arrive_in(CtaRank::self().value() & ~1U, &word.bits);
        } else {
            Barrier(word, *state.visible).arrive();
        }
    }
    __syncwarp();
}

/// Ends products of a slot, for the role that multiplies: its sums are complete when they are.
template <class Machine>
TESSERA_TILE void finish_sums(StateOf<Machine>& state, int slot)
{
    if constexpr (Machine::role == Role::multiply) {
        commit_to(state, state.words->complete[slot]);
    }
}

/// Waits until the sums of a slot are complete, for the roles that compute.
template <class Machine>
TESSERA_TILE void await_sums(StateOf<Machine>& state, int slot)
{
    if constexpr (Machine::computes) {
        Barrier(state.words->complete[slot], *state.visible).wait(parity_of(state.phases, slot));
        tcgen05_fence_after_sync();
    }
}

/// Gives a slot back to the role that multiplies.
template <class Machine>
TESSERA_TILE void free_sums(StateOf<Machine>& state, int slot)
{
    if constexpr (Machine::computes) {
        arrive_for_warp(state, state.words->free[slot]);
    }
    state.phases ^= 1U << slot;
}

/// Waits until a slot is free, for the role that multiplies.
template <class Machine>
TESSERA_TILE void await_free_slot(StateOf<Machine>& state, int slot)
{
    if constexpr (Machine::role == Role::multiply) {
        Barrier(state.words->free[slot], *state.visible).wait(parity_before(state.phases, slot));
        tcgen05_fence_after_sync();
    }
}

/// Passes what the roles that compute store into a slot to the role that multiplies.
/// @param store  called with the address of the slot
template <class Machine, class Store>
TESSERA_TILE void write_slot(StateOf<Machine>& state, int slot, [[maybe_unused]] Store store)
{
    if constexpr (Machine::computes) {
        meet<Machine::threads>();  // a tile of another shape may still be read there
        store(slot_address(state, slot));
        arrive_for_warp(state, state.words->written[slot]);
    } else if constexpr (Machine::role == Role::multiply) {
        Barrier(state.words->written[slot], *state.visible).wait(parity_of(state.written, slot));
        tcgen05_fence_after_sync();
    }
    state.written ^= 1U << slot;
}

TESSERA_TILE int count_ones(std::uint32_t bits)
{
#ifdef __CUDA_ARCH__
    return __popc(bits);
#else
    return __builtin_popcount(bits);
#endif
}
/// Of 32 ones: 31.
TESSERA_TILE int count_trailing_ones(std::uint32_t bits) { return count_ones(bits & ~(bits + 1) & 0x7fffffffU); }

/// Takes a slot that has no tile, in turn, so that the sums of the next work tile are added up while the last ones are stored.
/// @param columns  that the tile has in tensor memory
template <class Machine>
TESSERA_TILE int take_slot(StateOf<Machine>& state, std::uint32_t columns)
{
    int slot = 0;
    if constexpr (Machine::is_planned) {
        slot = count_trailing_ones(state.live);
    } else {
#ifdef __CUDA_ARCH__
        const std::uint32_t unused = ~state.live & ((1U << state.slots) - 1U);
        const std::uint32_t later = unused & (~0U << state.next_slot);
        // A branch that the plan did not see may take more slots, or wider ones.
        tessera::detail::trap_unless(unused != 0 && columns <= state.slot_columns);
        slot = __ffs(static_cast<int>(later != 0 ? later : unused)) - 1;
#endif
    }
    state.next_slot = slot + 1 == state.slots ? 0 : slot + 1;
    state.live |= 1U << slot;
    if constexpr (Machine::is_planned) {
        constexpr std::uint32_t unit = 32;
        note_tile_in_tensor_memory((columns + unit - 1) / unit * unit, count_ones(state.live));
    }
    if ((state.pending >> slot & 1U) != 0) {
        state.pending ^= 1U << slot;
        await_sums<Machine>(state, slot);
        free_sums<Machine>(state, slot);
    }
    return slot;
}

/// Gives up a slot.
/// @param unread  products were issued since its sums were read
template <class Machine>
TESSERA_TILE void give_up_slot(StateOf<Machine>& state, int slot, bool unread)
{
    if (unread) {
        finish_sums<Machine>(state, slot);
        state.pending |= 1U << slot;
    }
    state.live &= ~(1U << slot);
}

/// Waits for products whose sums nobody read, before the CTA ends.
template <class Machine>
__device__ __forceinline__ void await_pending(StateOf<Machine>& state)
{
#pragma unroll 1
    for (int slot = 0; slot < state.slots; ++slot) {
        if ((state.pending >> slot & 1U) != 0) {
            await_sums<Machine>(state, slot);
        }
    }
}

/// Where fragment (m, n) of the calling warp is.
/// @tparam InWord   values that a column of tensor memory has
/// @param  columns  of the tile
template <class Layout, int InWord = 1>
__device__ __forceinline__ std::uint32_t fragment_address(std::uint32_t first, int m, int n, int columns)
{
    const int column = (m / 2 * columns + Layout::Grid::n() * 8 * Layout::along_n + 8 * n) / InWord;
    return tessera::detail::tmem_address(first, static_cast<std::uint32_t>(32 * Layout::Grid::m() + m % 2 * 16),
                                         static_cast<std::uint32_t>(column));
}

/// Loads sums: those of each 128 rows have `C` columns of their own.
template <int First, int R, int C, int WarpsN>
__device__ __forceinline__ void start_to_load(Tile<float, R, C, LaneFragments<R, C, WarpsN>>& tile, std::uint32_t slot)
{
    using Layout = LaneFragments<R, C, WarpsN>;
    constexpr int left = Layout::along_n - First;
    if constexpr (left > 0) {
        constexpr int count = left >= 8 ? 8 : left >= 4 ? 4 : left >= 2 ? 2 : 1;
#pragma unroll
        for (int m = 0; m < Layout::along_m; ++m) {
            tessera::detail::tcgen05_load_fragments<count>(fragment_address<Layout>(slot, m, First, C),
                                                           &Access::values(tile)[(m * Layout::along_n + First) * 4]);
        }
        start_to_load<First + count>(tile, slot);
    }
}
template <int R, int C, int WarpsN>
__device__ __forceinline__ void load_sums(Tile<float, R, C, LaneFragments<R, C, WarpsN>>& tile, std::uint32_t slot)
{
    start_to_load<0>(tile, slot);
    tessera::detail::tcgen05_wait_loads();
#pragma unroll
    for (int i = 0; i < LaneFragments<R, C, WarpsN>::registers; ++i) {
        asm volatile("" : "+f"(Access::values(tile)[i])::"memory");  // no use moves before the wait
    }
}

/// Packs 16-bit values, two in a word, and stores them as A of a product: those of each 128 rows have `C / 2` columns.
template <class T, int R, int C, int WarpsN>
__device__ __forceinline__ void store_operand(const Tile<T, R, C, LaneFragments<R, C, WarpsN>>& tile,
                                              std::uint32_t slot)
{
    using Layout = LaneFragments<R, C, WarpsN>;
    constexpr int count = Layout::along_n % 4 == 0 ? 4 : 1;
    const auto& values = Access::values(tile);
#pragma unroll
    for (int m = 0; m < Layout::along_m; ++m) {
#pragma unroll
        for (int n = 0; n < Layout::along_n; n += count) {
            std::uint32_t words[2 * count];
#pragma unroll
            for (int i = 0; i < 2 * count; ++i) {
                const int first = (m * Layout::along_n + n) * 4 + 2 * i;
                words[i] = __builtin_bit_cast(std::uint16_t, values[first]) |
                           static_cast<std::uint32_t>(__builtin_bit_cast(std::uint16_t, values[first + 1])) << 16;
            }
            tessera::detail::tcgen05_store_packed_fragments<count>(fragment_address<Layout, 2>(slot, m, n, C), words);
        }
    }
    tcgen05_wait_stores();
}

/// Stores values where sums are added to them.
template <int R, int C, int WarpsN>
__device__ __forceinline__ void store_sums(const Tile<float, R, C, LaneFragments<R, C, WarpsN>>& tile,
                                           std::uint32_t slot)
{
    using Layout = LaneFragments<R, C, WarpsN>;
    constexpr int count = Layout::along_n % 4 == 0 ? 4 : 1;
#pragma unroll
    for (int m = 0; m < Layout::along_m; ++m) {
#pragma unroll
        for (int n = 0; n < Layout::along_n; n += count) {
            tessera::detail::tcgen05_store_fragments<count>(fragment_address<Layout>(slot, m, n, C),
                                                            &Access::values(tile)[(m * Layout::along_n + n) * 4]);
        }
    }
    tcgen05_wait_stores();
}

}  // namespace tessera::tile::detail
