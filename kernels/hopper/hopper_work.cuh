#pragma once

/// Deals the work: the sequence of (tile, range of K) of each cluster, the same in every role.
///
/// Data-parallel: cluster c has the tiles c, c + clusters, ... whole. Stream-K: all stages of all tiles are laid end to
/// end and cut into equal parts, one for each cluster; a tile that is cut is summed up by whoever finishes last, in the
/// order of K (Osama et al., "Stream-K", PPoPP 2023).

#include <cstdint>

#include "hopper_arguments.hpp"
#include "kernels/common/tile_raster.cuh"
#include "tessera/device/cluster.cuh"

namespace tessera::kernels {

/// A part of a tile.
struct HopperUnit {
    std::uint32_t tile;     // in raster order
    std::uint32_t k_begin;  // in stages; of the CTA's layer
    std::uint32_t k_count;
    bool shared;  // with other clusters
};

/// Who shares a tile.
struct HopperSharers {
    std::uint32_t first;  // clusters
    std::uint32_t last;
};

class HopperQueue {
public:
    __device__ HopperQueue(const HopperWork& work, std::uint32_t cluster, std::uint32_t clusters,
                           const ClusterGrid& grid)
        : work_(work),
          clusters_(clusters),
          layer_(grid.layer()),
          layers_(grid.layers()),
          next_(cluster),
          end_(work.tiles)
    {
        if (work.stream_k) {
            next_ = begin_of(cluster);
            end_ = begin_of(cluster + 1);
        }
    }

    /// The next unit, if there is one.
    __device__ bool next(HopperUnit& unit)
    {
        if (next_ >= end_) {
            return false;
        }
        if (!work_.stream_k) {
            unit = {.tile = next_, .k_begin = 0, .k_count = work_.k_blocks, .shared = false};
            next_ += clusters_;
        } else {
            unit.tile = next_ / work_.k_blocks;
            unit.k_begin = next_ - unit.tile * work_.k_blocks;
            unit.k_count = min(work_.k_blocks - unit.k_begin, end_ - next_);
            unit.shared = unit.k_count < work_.k_blocks;
            next_ += unit.k_count;
        }
        if (layers_ > 1) {  // the host sees to it that no layer is left without a stage
            const std::uint32_t begin = layer_ * unit.k_count / layers_;
            unit.k_count = (layer_ + 1) * unit.k_count / layers_ - begin;
            unit.k_begin += begin;
        }
        return true;
    }

    /// The clusters that have a part of `tile`.
    __device__ HopperSharers sharers(std::uint32_t tile) const
    {
        const std::uint32_t first = tile * work_.k_blocks;
        return {.first = owner_of(first), .last = owner_of(first + work_.k_blocks - 1)};
    }

    /// Where `cluster` puts its part of `tile`. A cluster shares at most its first and its last tile.
    __device__ std::uint32_t partial_slot(std::uint32_t cluster, std::uint32_t tile) const
    {
        return 2 * cluster + (begin_of(cluster) / work_.k_blocks == tile ? 0 : 1);
    }

    /// Where the tile is.
    __device__ TileIndex place(std::uint32_t tile) const
    {
        return grouped_tile(tile, work_.tiles_m, work_.tiles_n, work_.band);
    }

private:
    /// First stage of a cluster's part. The host keeps tiles * k_blocks below 2^31.
    __device__ std::uint32_t begin_of(std::uint32_t cluster) const
    {
        const std::uint64_t stages = std::uint64_t{work_.tiles} * work_.k_blocks;
        return static_cast<std::uint32_t>(cluster * stages / clusters_);
    }
    /// The inverse: the last cluster that begins at or before `stage`.
    __device__ std::uint32_t owner_of(std::uint32_t stage) const
    {
        const std::uint64_t stages = std::uint64_t{work_.tiles} * work_.k_blocks;
        return static_cast<std::uint32_t>(((std::uint64_t{stage} + 1) * clusters_ - 1) / stages);
    }

    const HopperWork& work_;
    std::uint32_t clusters_;
    std::uint32_t layer_;
    std::uint32_t layers_;
    std::uint32_t next_;
    std::uint32_t end_;
};

}  // namespace tessera::kernels
