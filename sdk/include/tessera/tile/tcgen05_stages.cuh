#pragma once

/// @file
/// @ingroup tile_products
/// @brief Stages and held tiles where tcgen05 multiplies: TMA fills them, and the tensor core frees them. Private to tessera/tile.
///
/// In a pair of CTAs each loads its own rows of A and a half of B, and both count at the first one's barriers: its thread multiplies
/// for both. In a cluster of pairs, those with the same rows of A, or the same half of B, load its boxes in turn, each for all of them. A
/// slot is free when all pairs have read it.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "tessera/device/barrier.cuh"
#include "tessera/device/cluster.cuh"
#include "tessera/device/tma.cuh"
#include "tessera/tile/tensor_memory.cuh"
#include "tessera/tile/view.cuh"

namespace tessera::tile::detail {

/// True if the band's tile is divided between the CTAs of a pair.
template <class Machine, class View>
TESSERA_TILE bool is_halved(const Band<View>& band)
{
    return Machine::multiplying_ctas == 2 && band.kind() == BandKind::of_place_columns;
}

/// The bytes that a tile of a band has in the calling CTA.
template <class Machine, class View>
TESSERA_TILE std::uint32_t bytes_in_cta(const Band<View>& band)
{
    return static_cast<std::uint32_t>(is_halved<Machine>(band) ? View::Staged::bytes / 2 : View::Staged::bytes);
}
/// The same with what is left free before the next tile.
template <class Machine, class View>
TESSERA_TILE std::uint32_t staged_bytes_in_cta(const Band<View>& band)
{
    return is_halved<Machine>(band) ? half_staged_bytes_of<View> : staged_bytes_of<View>;
}

/// Calls `load` for each box of a tile, or of a pair's half of its columns: with its number, where it goes, and its coordinates.
template <bool IsHalf, class View, class Load>
__device__ __forceinline__ void for_each_box_in_cta(std::uint32_t address, const Spot& spot, Load&& load)
{
    using Geometry = std::conditional_t<IsHalf, HalvedTile<typename View::Staged>, typename View::Staged>;
    constexpr int blocks = Geometry::blocks / (IsHalf && Geometry::row_major ? 2 : 1);
    constexpr int lines = Geometry::lines / (IsHalf && !Geometry::row_major ? 2 : 1);
    constexpr int block_bytes = lines * Geometry::line_bytes;
    constexpr int boxes = lines / Geometry::box_lines;  // of a block
    const int first_column = IsHalf ? static_cast<int>(cta_of_pair()) * (View::columns / 2) : 0;
    const int column = static_cast<int>(spot.column) + first_column;
    const int contiguous = Geometry::row_major ? column : static_cast<int>(spot.row);
    const int line = Geometry::row_major ? static_cast<int>(spot.row) : column;
    auto* const to = static_cast<std::byte*>(__cvta_shared_to_generic(address));
#pragma unroll
    for (int block = 0; block < blocks; ++block) {
#pragma unroll
        for (int box = 0; box < boxes; ++box) {
            const std::int32_t origin[3] = {contiguous + block * Geometry::in_line, line + box * Geometry::box_lines,
                                            static_cast<std::int32_t>(spot.batch)};
            load(static_cast<std::uint32_t>(block * boxes + box),
                 to + block * block_bytes + box * Geometry::box_lines * Geometry::line_bytes, origin);
        }
    }
}

/// Loads a tile, or a pair's half of its columns. One thread.
template <CtaGroup Group, bool IsHalf, class View>
__device__ __forceinline__ void load_part(const View& view, std::uint32_t address, const Spot& spot,
                                          std::uint64_t* full)
{
    for_each_box_in_cta<IsHalf, View>(address, spot,
                                      [&](std::uint32_t /*index*/, std::byte* to, const std::int32_t(&origin)[3]) {
                                          tessera::detail::tensor_load<Group>(to, &view.map(), origin, full);
                                      });
}

/// The same where pairs of a cluster have the same: each loads its share for all of them.
/// @tparam Parts     pairs that do
/// @param part       the calling CTA's place among them
/// @param receivers  CTAs with the same tile or half
template <bool IsHalf, std::uint32_t Parts, class View>
__device__ __forceinline__ void load_part_for_pairs(const View& view, std::uint32_t address, const Spot& spot,
                                                    std::uint64_t* full, std::uint32_t part, ReadyCtas receivers)
{
    for_each_box_in_cta<IsHalf, View>(
        address, spot, [&](std::uint32_t index, std::byte* to, const std::int32_t(&origin)[3]) {
            if (index % Parts == part) {
                tessera::detail::tensor_load_multicast<CtaGroup::pair>(to, &view.map(), origin, full, receivers);
            }
        });
}

/// Loads the calling CTA's part of a band's tile. One thread.
template <class Machine, class View>
__device__ __forceinline__ void load_of_band(const StateOf<Machine>& state, const Band<View>& band, int step,
                                             std::uint32_t address, std::uint64_t* full)
{
    constexpr int pair_rows = Machine::group_rows / Machine::multiplying_ctas;  // of a cluster
    [[maybe_unused]] const ClusterGrid cluster(Machine::group_rows, Machine::group_columns);
    if constexpr (Machine::multiplying_ctas == 2 && HalvedTile<typename View::Staged>::exists) {
        if (is_halved<Machine>(band)) {
            if constexpr (pair_rows > 1) {
                load_part_for_pairs<true, pair_rows>(band.view(), address, band.at(step), full, cluster.row() / 2,
                                                     state.visible->ready(cluster.my_place_in_pairs()));
            } else {
                load_part<group_of<Machine>, true>(band.view(), address, band.at(step), full);
            }
            return;
        }
    }
    if constexpr (Machine::group_columns > 1) {
        if (band.kind() == BandKind::of_place_rows) {
            load_part_for_pairs<false, Machine::group_columns>(
                band.view(), address, band.at(step), full, cluster.column(), state.visible->ready(cluster.my_row()));
            return;
        }
    }
    load_part<group_of<Machine>, false>(band.view(), address, band.at(step), full);
}

/// True in the CTA whose barriers count.
template <class Machine>
__device__ __forceinline__ bool counts()
{
    return tessera::detail::counts_for_group<group_of<Machine>>();
}

/// Arrivals at a stage's barrier, besides bytes: one that announces them, or one of each CTA of a pair.
template <class Machine>
inline constexpr std::uint32_t arrivals_to_fill = (Machine::ctas > Machine::multiplying_ctas) ? 2 : 1;

/// Waits for a tile, for the role that multiplies.
template <class Machine>
__device__ __forceinline__ void await_tile(const StateOf<Machine>& state, BarrierWord<FilledByTma>& full,
                                           std::uint32_t parity)
{
    Barrier(full, *state.visible).wait(static_cast<PhaseParity>(parity));
    tcgen05_fence_after_sync();
}

/// Waits until the tensor core has read a tile, for the role that loads.
template <class Machine>
__device__ __forceinline__ void await_read(const StateOf<Machine>& state, BarrierWord<FreedByTensorCore>& empty,
                                           std::uint32_t parity)
{
    Barrier(empty, *state.visible).wait(static_cast<PhaseParity>(parity ^ 1U));
}

/// Announces the bytes that arrive in all CTAs of the group. One thread of each.
template <class Machine>
__device__ __forceinline__ void announce(const StateOf<Machine>& state, BarrierWord<FilledByTma>& full,
                                         std::uint32_t bytes)
{
    if (counts<Machine>()) {
        Barrier(full, *state.visible).arrive_and_expect(bytes * Machine::multiplying_ctas);
    }
}

/// The same for a stage. In a cluster of pairs, a CTA that loads nothing, as its peers load for it, arrives all the same: else they could
/// be a step ahead, and its warp that loads would wait for a slot that was filled and freed without it.
template <class Machine>
__device__ __forceinline__ void announce_stage(const StateOf<Machine>& state, BarrierWord<FilledByTma>& full,
                                               std::uint32_t bytes)
{
    if (arrivals_to_fill<Machine> == 1 || counts<Machine>()) {
        announce<Machine>(state, full, bytes);
    } else {
        tessera::detail::arrive_in(CtaRank::self().value() & ~1U, &full.bits);
    }
}

/// Waits until the tensor core has read all that was loaded, so that nothing arrives at the CTA's barriers any more.
template <class Machine>
__device__ __forceinline__ void drain(StateOf<Machine>& state)
{
#pragma unroll 1
    for (int i = 0; i < state.stages; ++i) {
        await_read<Machine>(state, state.words->empty[state.slot], state.parity);
        advance(state);
    }
#pragma unroll 1
    for (int i = 0; i < most_held; ++i) {
        await_read<Machine>(state, state.words->held_empty[i], state.held_parity >> i & 1U);
    }
}

}  // namespace tessera::tile::detail
