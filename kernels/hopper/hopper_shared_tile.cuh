#pragma once

/// A tile of D that several clusters share (stream-K): where their parts are, and in which order they are added up.
///
/// Nobody waits for anybody: of each warp's rows, whoever comes last adds up. Many parts are added up in groups of
/// neighbours first, by the last of each group, which happens side by side, and then the groups' sums by the last of
/// all. The order depends on the number of parts only, so results repeat bit by bit.

#include <cstdint>

#include "hopper_arguments.hpp"
#include "hopper_work.cuh"
#include "tessera/device/cluster.cuh"

namespace tessera::kernels {

/// Parts of a tile that are added up together: those of the clusters first, first + step, ...
struct HopperParts {
    std::uint32_t first;
    std::uint32_t count;
    std::uint32_t step;
    bool complete;  // they make up the whole tile

    __device__ std::uint32_t cluster(std::uint32_t index) const { return first + index * step; }
};

template <class Config>
class HopperSharedTile {
    static constexpr int tile_elements = Config::config.tile_m * Config::config.tile_n;
    static constexpr int warps = 4 * Config::config.consumers;
    static constexpr std::uint32_t group_size = 8;

public:
    __device__ HopperSharedTile(const HopperArguments& arguments, const HopperQueue& queue, std::uint32_t tile,
                                const ClusterGrid& cluster)
        : workspace_(arguments.workspace),
          queue_(queue),
          sharers_(queue.sharers(tile)),
          tile_(tile),
          rank_(cluster.rank()),
          size_(cluster.size())
    {}

    /// (tile_m, tile_n) in the workspace: what this CTA's fellow in `cluster` has added up.
    __device__ float* part(std::uint32_t cluster) const { return workspace_.partials + slot(cluster) * tile_elements; }

    /// The parts that are added up with the one of `cluster`.
    __device__ HopperParts group_of(std::uint32_t cluster) const
    {
        const std::uint32_t count = sharers_.last - sharers_.first + 1;
        const std::uint32_t begin = (cluster - sharers_.first) / group_size * group_size;
        return {.first = sharers_.first + begin,
                .count = min(count - begin, group_size),
                .step = 1,
                .complete = count <= group_size};
    }
    /// The sums of all groups, each in the place of its first part.
    __device__ HopperParts groups() const
    {
        const std::uint32_t count = sharers_.last - sharers_.first + 1;
        return {.first = sharers_.first,
                .count = (count + group_size - 1) / group_size,
                .step = group_size,
                .complete = true};
    }

    /// Called by a whole warp when its rows of one of `parts` are written: whether those of all of them are now.
    __device__ bool is_last(const HopperParts& parts, int warp) const
    {
        // A group is counted in its first part's slot, groups in the slot of the tile's second part, which begins none.
        const std::uint32_t counted_at = parts.step == 1 ? parts.first : parts.first + 1;
        std::uint32_t* const counter = workspace_.arrivals + slot(counted_at) * warps + warp;
        bool last = false;
        __threadfence();
        __syncwarp();
        if (threadIdx.x % 32 == 0) {
            last = atomicAdd(counter, 1U) == parts.count - 1;
            if (last) {
                *counter = 0;  // for the next launch
            }
        }
        last = __shfl_sync(0xFFFFFFFF, static_cast<int>(last), 0) != 0;
        __threadfence();
        return last;
    }

private:
    __device__ std::uint64_t slot(std::uint32_t cluster) const
    {
        return std::uint64_t{queue_.partial_slot(cluster, tile_)} * size_ + rank_;
    }

    const HopperWorkspace& workspace_;
    const HopperQueue& queue_;
    HopperSharers sharers_;
    std::uint32_t tile_;
    std::uint32_t rank_;
    std::uint32_t size_;
};

}  // namespace tessera::kernels
