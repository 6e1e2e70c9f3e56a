#pragma once

/// A tile of D that several clusters share (stream-K): where their sums are, and who adds them.
///
/// Each warp of the epilogue shares its 32 rows with the same warp of the other clusters, and with nobody else. The last warp
/// to arrive adds all sums in the order of K. The result does not depend on which one is last, and no warp waits.
///
/// The sums are fp32 in the workspace, in an order in which a warp writes and reads 512 contiguous bytes at a time.

#include <cstdint>

#include "blackwell_arguments.hpp"
#include "blackwell_config.hpp"
#include "tessera/device/clc.cuh"
#include "tessera/device/cluster.cuh"
#include "tessera/device/register_tile.cuh"

namespace tessera::kernels {

/// One warp's 32 rows of a block of a tile.
template <class Config>
class BlackwellSharedTile {
    static constexpr BlackwellConfig config = Config::config;
    static constexpr std::uint32_t part_floats = 32 * config.block_n;
    static constexpr std::uint32_t warps_of_cluster = config.cluster * config.m_tiles * epilogue_warps;

public:
    /// Columns of a chunk: what is written, or read and added, at a time.
    static constexpr std::uint32_t chunk_columns = 16;
    using Values = RegisterTile<float, chunk_columns>;

    /// A tile that is not shared.
    BlackwellSharedTile() = default;
    /// @param warp  the warp's number among those of the cluster: of its rank, block and index
    __device__ BlackwellSharedTile(const BlackwellArguments& arguments, std::uint32_t tile, std::uint32_t warp)
    {
        const auto sharers = StreamKWorkQueue::sharers(arguments.split, tile);
        count_ = sharers.last - sharers.first + 1;
        own_ = StreamKWorkQueue::cluster() - sharers.first;
        partials_ =
            arguments.workspace.partials + (std::uint64_t{2} * sharers.first * warps_of_cluster + warp) * part_floats;
        arrived_ = arguments.workspace.arrivals + sharers.first * warps_of_cluster + warp;
    }

    __device__ bool is_shared() const { return count_ > 1; }

    /// Returns true if the sums of all other sharers have arrived; the warp then sees them. Called by the whole warp.
    __device__ bool others_have_arrived() const
    {
        std::uint32_t arrived = 0;
        if (threadIdx.x % 32 == 0) {
            arrived = __nv_atomic_load_n(arrived_, __NV_ATOMIC_ACQUIRE, __NV_THREAD_SCOPE_DEVICE);
        }
        return is_last(arrived);
    }

    /// Writes a chunk of the warp's own sums.
    __device__ __forceinline__ void put(std::uint32_t chunk, const Values& values) const
    {
        float4* const place = chunk_of(own_, chunk);
#pragma unroll
        for (std::uint32_t quad = 0; quad < chunk_quads; ++quad) {
            __stcg(place + quad * 32,
                   make_float4(values[4 * quad], values[4 * quad + 1], values[4 * quad + 2], values[4 * quad + 3]));
        }
    }

    /// Announces that the warp's own sums are written. Returns true if all others have arrived; the warp then sees their
    /// sums. Called by the whole warp.
    __device__ bool arrive() const
    {
        __syncwarp();
        std::uint32_t before = 0;
        if (threadIdx.x % 32 == 0) {
            // Release: a warp that arrives later sees the sums. Acquire: this one sees those of earlier ones.
            before = __nv_atomic_fetch_add(arrived_, 1U, __NV_ATOMIC_ACQ_REL, __NV_THREAD_SCOPE_DEVICE);
        }
        return is_last(before);
    }

    /// Replaces a chunk of the warp's own sums by those of all sharers.
    __device__ __forceinline__ void add_all(std::uint32_t chunk, Values& values) const
    {
        Values sums = own_ == 0 ? values : get(0, chunk);
#pragma unroll 1
        for (std::uint32_t part = 1; part < count_; ++part) {
            const Values addends = part == own_ ? values : get(part, chunk);
#pragma unroll
            for (std::uint32_t i = 0; i < chunk_columns; ++i) {
                sums[i] += addends[i];
            }
        }
        values = sums;
    }

    /// Makes the counter zero, as the next launch needs it. Called by the warp that arrived last.
    __device__ void reset() const
    {
        if (threadIdx.x % 32 == 0) {
            __nv_atomic_store_n(arrived_, 0U, __NV_ATOMIC_RELAXED, __NV_THREAD_SCOPE_DEVICE);
        }
    }

private:
    static constexpr std::uint32_t chunk_quads = chunk_columns / 4;

    __device__ bool is_last(std::uint32_t arrived_of_first_lane) const
    {
        const bool last = __shfl_sync(0xFFFFFFFFU, arrived_of_first_lane, 0) == count_ - 1;
        __syncwarp();
        return last;
    }
    /// The lane's first quad of a chunk. A cluster has two slots: one for the tile that begins in it, the other for the tile
    /// in which it begins.
    __device__ float4* chunk_of(std::uint32_t sharer, std::uint32_t chunk) const
    {
        const std::uint32_t slot = sharer == 0 ? 0 : 2 * sharer + 1;
        float* const part = partials_ + std::uint64_t{slot} * warps_of_cluster * part_floats;
        return reinterpret_cast<float4*>(part) + chunk * chunk_quads * 32 + threadIdx.x % 32;
    }
    __device__ __forceinline__ Values get(std::uint32_t sharer, std::uint32_t chunk) const
    {
        const float4* const place = chunk_of(sharer, chunk);
        Values values{};
#pragma unroll
        for (std::uint32_t quad = 0; quad < chunk_quads; ++quad) {
            const float4 four = __ldcg(place + quad * 32);
            values[4 * quad] = four.x;
            values[4 * quad + 1] = four.y;
            values[4 * quad + 2] = four.z;
            values[4 * quad + 3] = four.w;
        }
        return values;
    }

    float* partials_ = nullptr;         // of the first sharer
    std::uint32_t* arrived_ = nullptr;  // warps whose sums are written
    std::uint32_t count_ = 1;           // sharers
    std::uint32_t own_ = 0;             // index of the calling thread's cluster among them
};

}  // namespace tessera::kernels
