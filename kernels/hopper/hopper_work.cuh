#pragma once

/// The tile scheduler: gives each cluster its sequence of work tiles (tile, range of K), the same in every role.
///
/// Data-parallel: cluster c has the whole tiles c, c + clusters, ... Stream-K: the stages of all tiles are laid end to
/// end and cut into equal parts, one per cluster; the clusters that have parts of a tile sum it up together (Osama et
/// al., "Stream-K", PPoPP 2023).

#include <cuda/ptx>

#include <cstdint>

#include "hopper_arguments.hpp"
#include "tessera/device/cluster.cuh"

namespace tessera::kernels {

/// A work tile: a tile of D, or a range of K of it.
struct HopperUnit {
    std::uint32_t tile;     // index in raster order
    std::uint32_t k_begin;  // first stage, of the CTA's own part if the cluster splits K
    std::uint32_t k_count;  // stages
    std::uint32_t c_slots;  // slots of the ring after the stages: C, for the epilogue of a whole tile
    bool shared;            // with other clusters
};

/// A range of clusters or tiles; both ends are included.
struct HopperRange {
    std::uint32_t first;
    std::uint32_t last;
};

/// Iterates over the work tiles of the calling thread's cluster. Each role has its own.
class HopperQueue {
public:
    __device__ HopperQueue(const HopperWork& work, const ClusterGrid& grid)
        : work_(work), grid_(grid), next_(cluster()), end_(work.tiles)
    {
        if (work.stream_k) {
            next_ = work.split.begin_of(cluster());
            end_ = work.split.begin_of(cluster() + 1);
        }
    }

    /// Index of the calling thread's cluster in the grid.
    __device__ static std::uint32_t cluster() { return cuda::ptx::get_sreg_clusterid_x(); }

    /// Returns true if `next` has another work tile.
    __device__ bool has_next() const { return next_ < end_; }

    /// Returns the next work tile in `unit`, or false.
    __device__ bool next(HopperUnit& unit)
    {
        if (!has_next()) {
            return false;
        }
        const std::uint32_t k_blocks = work_.k_blocks.value();
        if (!work_.stream_k) {
            unit = {.tile = next_, .k_begin = 0, .k_count = k_blocks, .c_slots = work_.c_slots, .shared = false};
            next_ += cuda::ptx::get_sreg_nclusterid_x();
        } else {
            unit.tile = work_.k_blocks.quotient(next_);
            unit.k_begin = next_ - unit.tile * k_blocks;
            unit.k_count = min(k_blocks - unit.k_begin, end_ - next_);
            unit.shared = unit.k_count < k_blocks;
            unit.c_slots = unit.shared ? 0 : work_.c_slots;
            next_ += unit.k_count;
        }
        if (grid_.layers() > 1) {  // split-K in the cluster; the host ensures that every CTA has at least one stage
            const std::uint32_t begin = grid_.first_of_layer(unit.k_count, grid_.layer());
            unit.k_count = grid_.first_of_layer(unit.k_count, grid_.layer() + 1) - begin;
            unit.k_begin += begin;
            unit.c_slots = 0;
        }
        return true;
    }

    /// The first and the last tile of the calling thread's cluster. For stream_k, before the first `next`.
    __device__ HopperRange outer_tiles() const
    {
        return {.first = work_.k_blocks.quotient(next_), .last = work_.k_blocks.quotient(end_ - 1)};
    }

    /// The clusters that share `tile`.
    __device__ HopperRange sharers(std::uint32_t tile) const
    {
        const std::uint32_t first = tile * work_.k_blocks.value();
        return {.first = work_.split.owner_of(first), .last = work_.split.owner_of(first + work_.k_blocks.value() - 1)};
    }

private:
    const HopperWork& work_;
    const ClusterGrid& grid_;
    std::uint32_t next_;
    std::uint32_t end_;
};

}  // namespace tessera::kernels
