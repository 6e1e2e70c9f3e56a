#pragma once

/// @file
/// @ingroup tile_products
/// @brief How TMA brings tiles of inputs to shared memory, for one CTA or for those of a cluster. Private to tessera/tile.

#include "tessera/detail/language.hpp"

#include <cstddef>
#include <cstdint>

#include "tessera/device/barrier.cuh"
#include "tessera/device/cluster.cuh"
#include "tessera/device/tma.cuh"
#include "tessera/tile/view.cuh"

namespace tessera::tile::detail {

/// Calls `visit` for each box of a tile with its number, where it goes, and its coordinates.
template <class View, class Visit>
__device__ __forceinline__ void for_each_box(std::uint32_t address, const Spot& spot, Visit&& visit)
{
    using Geometry = typename View::Staged;
    constexpr int boxes = Geometry::lines / Geometry::box_lines;  // of a block
    const auto contiguous = static_cast<int>(Geometry::row_major ? spot.column : spot.row);
    const auto line = static_cast<int>(Geometry::row_major ? spot.row : spot.column);
    const auto batch = static_cast<int>(spot.batch);
    auto* const to = static_cast<std::byte*>(__cvta_shared_to_generic(address));
#pragma unroll
    for (int block = 0; block < Geometry::blocks; ++block) {
#pragma unroll
        for (int box = 0; box < boxes; ++box) {
            const int at[3] = {contiguous + block * Geometry::in_line, line + box * Geometry::box_lines, batch};
            visit(static_cast<std::uint32_t>(block * boxes + box),
                  to + block * Geometry::block_bytes + box * Geometry::box_lines * Geometry::line_bytes, at);
        }
    }
}

/// Asks TMA for a tile, box by box. One thread.
template <class View>
__device__ __forceinline__ void load_staged(const View& view, std::uint32_t address, const Spot& spot,
                                            const Barrier<FilledByTma>& full)
{
    for_each_box<View>(address, spot, [&](std::uint32_t, std::byte* to, const int(&at)[3]) {
        tma_load(view.map(), to, full.bytes(), at);
    });
}

/// Asks TMA for the calling CTA's part of a step's tile: CTAs of a cluster that have the same band load its boxes in turn, each for
/// all of them. One thread.
template <class Machine, class View>
__device__ __forceinline__ void load_for_cluster(const Band<View>& band, int step, std::uint32_t address,
                                                 const Barrier<FilledByTma>& full,
                                                 const BarriersPublishedToCluster& published)
{
    const ClusterGrid cluster(Machine::group_rows, Machine::group_columns);
    const bool of_row = band.kind() == BandKind::of_place_rows && Machine::group_columns > 1;
    const bool of_column = band.kind() == BandKind::of_place_columns && Machine::group_rows > 1;
    if (!of_row && !of_column) {
        load_staged(band.view(), address, band.at(step), full);
        return;
    }
    const std::uint32_t parts = of_row ? Machine::group_columns : Machine::group_rows;
    const std::uint32_t part = of_row ? cluster.column() : cluster.row();
    const ReadyCtas receivers = published.ready(of_row ? cluster.my_row() : cluster.my_column());
    for_each_box<View>(address, band.at(step), [&](std::uint32_t index, std::byte* to, const int(&at)[3]) {
        if (index % parts == part) {
            tma_load_multicast(band.view().map(), to, full.bytes(), at, receivers);
        }
    });
}

}  // namespace tessera::tile::detail
