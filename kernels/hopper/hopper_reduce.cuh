#pragma once

/// Sums up what several consumers, CTAs or clusters have computed of one tile: intra-CTA split-K, cluster split-K and
/// stream-K. The consumers of a tile take part together.

#include <cstdint>

#include "hopper_arguments.hpp"
#include "hopper_shared.cuh"
#include "hopper_shared_tile.cuh"
#include "hopper_work.cuh"
#include "kernels/gemm/epilogue.cuh"
#include "kernels/gemm/ptx.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

/// One consumer's side. Every function is executed by its 128 threads.
template <class Config>
class HopperReduction {
    static constexpr int tile_m = Config::config.tile_m;
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int blocks = Config::config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    using Accumulators = float[blocks][registers];

public:
    __device__ HopperReduction(const HopperArguments& arguments, HopperShared<Config>& shared, int consumer)
        : arguments_(arguments), shared_(shared), consumer_(consumer)
    {}

    /// Sums up the parts of a shared tile, in an order that does not depend on timing, and writes it.
    ///
    /// The CTAs of a cluster that splits K exchange their parts through distributed shared memory, and each sums up one
    /// slice. They reuse the memory of the stages, which is free because a cluster that splits K has one work tile.
    /// Every thread of the cluster takes part in two cluster synchronizations: the load warpgroup in the kernel itself.
    /// Clusters exchange their parts through the workspace, of the whole tile or of the CTA's slice: see HopperSharedTile.
    /// @param is_last  this is the last work tile of the CTA
    __device__ __forceinline__ void combine(const Accumulators& accumulators, const HopperQueue& queue,
                                            const HopperUnit& unit, bool is_last, const ClusterGrid& cluster,
                                            int consumer_row, std::int64_t row, std::int64_t column,
                                            std::uint32_t batch) const
    {
        const HopperSharedTile<Config> tile(arguments_, queue, unit.tile, cluster);
        const bool leads = team_thread() < 32;  // the first warp of the tile's consumers
        const std::uint32_t started = leads && unit.shared ? tile.have_started() : 0;
        std::uint32_t leaving = 0;
        HopperSlice slice{};
        auto* const local = reinterpret_cast<float*>(&shared_.stages[0]);  // (tile_m, layer_pitch)
        static_assert(sizeof(shared_.stages) >= sizeof(float) * tile_m * layer_pitch);
        Quads quads{.begin = 0, .end = tile_quads};
        bool of_layers = cluster.layers() > 1;
        if (of_layers) {
            synchronize_team();  // the other consumer may still multiply from this memory
#pragma unroll
            for (int block = 0; block < blocks; ++block) {
                put_rows<layer_pitch>(accumulators[block], local + (consumer_row + block * 64) * layer_pitch,
                                      [](float* place, float2 pair) { *reinterpret_cast<float2*>(place) = pair; });
            }
            ClusterGrid::synchronize();
            quads = quads.slice({.index = cluster.layer(), .count = cluster.layers()});
        } else {
            float* const own = tile.own_part();
#pragma unroll
            for (int block = 0; block < blocks; ++block) {
                put_rows<tile_n>(accumulators[block], own + (consumer_row + block * 64) * tile_n,
                                 [](float* place, float2 pair) { __stcg(reinterpret_cast<float2*>(place), pair); });
            }
        }

        const Epilogue epilogue(arguments_.gemm, batch);
        const bool plain = arguments_.finishing == HopperFinishing::plain && arguments_.gemm.n % 4 == 0;
        // One copy of this code serves both rounds: it is not in the instruction cache when a product reaches it.
#pragma unroll 1
        for (;;) {
            if (!of_layers) {
                synchronize_team();  // this CTA's part is completely written
                HopperSlice& shared_slice = shared_.slice[cooperative ? 0 : consumer_];
                if (leads) {
                    slice = tile.arrive(is_last, started);
                    if (threadIdx.x % 32 == 0) {
                        shared_slice = slice;
                        leaving = tile.begin_leaving(slice);
                    }
                }
                __syncwarp();
                synchronize_team();
                slice = shared_slice;
                quads = quads.slice(slice);
            }
            // The sums are parts for other clusters: to the workspace.
            const bool passes_on = of_layers && unit.shared;
            const std::uint32_t count = of_layers ? cluster.layers() : tile.count();
            const int log2_adders = log2_adders_of(count, of_layers ? 1 : cluster.layers());
            add_up(
                quads, log2_adders,
                [&](Sums& sums, const Share& share) {
                    // Two loops, because loads from either place in one loop would wait for each other.
                    if (of_layers) {
                        add_parts(sums, share, count, [&](std::uint32_t part, int quad_row, int quad_column) {
                            const float* const source = local + quad_row * layer_pitch + quad_column;
                            return load_from_peer(reinterpret_cast<const float4*>(source), cluster.in_layer(part));
                        });
                    } else {
                        add_parts(sums, share, count, [&](std::uint32_t part, int quad_row, int quad_column) {
                            const float* const source = tile.part(part) + quad_row * tile_n + quad_column;
                            return __ldcg(reinterpret_cast<const float4*>(source));
                        });
                    }
                },
                [&](float4 sum, int quad_row, int quad_column) {
                    if (passes_on) {
                        __stcg(reinterpret_cast<float4*>(tile.own_part() + quad_row * tile_n + quad_column), sum);
                        return;
                    }
                    const float values[4] = {sum.x, sum.y, sum.z, sum.w};
                    const std::int64_t d_row = row - consumer_row + quad_row;
                    if (plain) {
                        epilogue.store_plain(d_row, column + quad_column, values);
                    } else {
                        epilogue.store<4>(d_row, column + quad_column, values);
                    }
                });
            if (!passes_on) {
                break;
            }
            of_layers = false;
        }
        if (team_thread() == 0) {
            tile.end_leaving(slice, leaving);
        }
    }

    /// Intra-CTA split-K, reduction across the two warpgroups: `put_sums` puts the second consumer's sums into its store
    /// buffers, and `add_sums` adds them to the first consumer's, which has the same elements in the same registers.
    __device__ __forceinline__ void put_sums(const Accumulators& accumulators) const
    {
        for_each_sum([&](float4& place, int block, int r) {
            const float* const d = &accumulators[block][r];
            place = make_float4(d[0], d[1], d[2], d[3]);
        });
    }
    __device__ __forceinline__ void add_sums(Accumulators& accumulators) const
    {
        for_each_sum([&](const float4& place, int block, int r) {
            float* const d = &accumulators[block][r];
            const float4 addend = place;
            d[0] += addend.x;
            d[1] += addend.y;
            d[2] += addend.z;
            d[3] += addend.w;
        });
    }

private:
    // Special registers are read at each use: that is cheaper than keeping them beside the accumulators.
    __device__ static int thread() { return ptx::read_thread_index() % 128; }

    // The consumers that compute the same tile.
    static constexpr bool cooperative = Config::config.schedule == HopperSchedule::cooperative;
    static constexpr int team_threads = cooperative ? 128 * Config::config.consumers : 128;
    /// The thread's index among theirs. The load warpgroup comes first in the CTA.
    __device__ static int team_thread()
    {
        const int thread = ptx::read_thread_index();  // not kept in a register beside the accumulators
        return cooperative ? thread - 128 : thread % 128;
    }
    __device__ void synchronize_team() const
    {
        if constexpr (cooperative) {
            synchronize_consumers<Config>();
        } else {
            synchronize_consumer(consumer_);
        }
    }

    /// Distance between rows of a part in shared memory, in floats: 16 bytes more than a row, to avoid bank conflicts.
    static constexpr int layer_pitch = tile_n + 4;

    /// A range of groups of four neighbouring elements of the tile, numbered in the order of their addresses in D.
    struct Quads {
        int begin;
        int end;

        /// Slice of the range; empty if there are 0 slices.
        __device__ Quads slice(const HopperSlice& slice) const
        {
            const auto count = static_cast<int>(slice.count);
            if (count == 0) {
                return {.begin = 0, .end = 0};
            }
            const int size = (end - begin + count - 1) / count;
            const int first = begin + static_cast<int>(slice.index) * size;
            return {.begin = min(first, end), .end = min(first + size, end)};
        }
    };
    static constexpr int tile_quads = tile_m * tile_n / 4;
    /// Groups of four that a thread sums up at a time, and parts of each that it loads at a time. For a small tile a
    /// thread has few groups anyway, and one at a time needs less code, which is not in the instruction cache when it
    /// is reached.
    static constexpr int quads_at_once = tile_quads / team_threads >= 32 ? 4 : tile_quads / team_threads >= 16 ? 2 : 1;
    static constexpr bool has_registers = Config::config.ctas == 1 && !Config::config.copies;
    static constexpr int loads_at_once = has_registers ? 8 : 4;
    static constexpr int parts_at_once = loads_at_once / quads_at_once;

    /// log2 of the number of lanes that share the parts of one group of four: as many as it takes to keep all threads
    /// busy when the tile, or a CTA's slice of it, is divided among as many CTAs as there are parts.
    __device__ static int log2_adders_of(std::uint32_t parts, std::uint32_t layers)
    {
        constexpr std::uint32_t rounds = tile_quads / (team_threads * quads_at_once);
        static_assert(rounds >= 1);
        const auto log2_rounds = static_cast<int>(ClusterGrid::log2(rounds));
        const auto log2_parts = static_cast<int>(ClusterGrid::log2(parts));
        const auto log2_layers = static_cast<int>(ClusterGrid::log2(layers));
        return min(max(log2_parts + log2_layers - log2_rounds, 0), min(log2_parts, 5));
    }

    __device__ static void add(float4& sum, const float4& addend)
    {
        sum.x += addend.x;
        sum.y += addend.y;
        sum.z += addend.z;
        sum.w += addend.w;
    }

    using Sums = float4[quads_at_once];
    /// What a thread sums up at a time: the parts adder, adder + adders, ... of some groups of four (fewer than
    /// `quads_at_once` at the end of a slice).
    struct Share {
        int quads;
        int row[quads_at_once];
        int column[quads_at_once];
        std::uint32_t adder;
        std::uint32_t adders;
    };

    /// Adds a share of `count` parts in their order. `load(part, row, column)` reads a group of four. Many loads are in
    /// flight, so this costs their latency once and not once per load.
    template <class Load>
    __device__ __forceinline__ static void add_parts(Sums& sums, const Share& share, std::uint32_t count, Load&& load)
    {
#pragma unroll 1
        for (std::uint32_t part = share.adder; part < count; part += share.adders * parts_at_once) {
            // Initialized: a register that only a predicated load writes would be in use in the whole kernel.
            float4 addends[parts_at_once][quads_at_once] = {};
#pragma unroll
            for (int p = 0; p < parts_at_once; ++p) {
#pragma unroll
                for (int i = 0; i < quads_at_once; ++i) {
                    if (part + p * share.adders < count && i < share.quads) {
                        addends[p][i] = load(part + p * share.adders, share.row[i], share.column[i]);
                    }
                }
            }
#pragma unroll
            for (int p = 0; p < parts_at_once; ++p) {
#pragma unroll
                for (int i = 0; i < quads_at_once; ++i) {
                    if (part + p * share.adders < count && i < share.quads) {
                        add(sums[i], addends[p][i]);
                    }
                }
            }
        }
    }

    /// Sums up `quads`, in an order that depends on `log2_adders` and the number of parts only: each adder sums its
    /// share of the parts by `add_share(sums, share)`, then the adders' sums are added pairwise. `put(sum, row,
    /// column)` stores a group of four.
    template <class AddShare, class Put>
    __device__ __forceinline__ void add_up(const Quads& quads, int log2_adders, AddShare&& add_share, Put&& put) const
    {
        const int thread = team_thread();
        const int lane = thread % 32;
        const int warp = thread / 32;
        const bool along_rows = arguments_.gemm.d_column_stride == 1;
        const int log2_width = 5 - log2_adders;  // neighbouring groups of four per warp
        const int log2_apart = static_cast<int>(ClusterGrid::log2(team_threads / 32)) + log2_width;
        Share share{.adder = static_cast<std::uint32_t>(lane >> log2_width), .adders = 1U << log2_adders};
#pragma unroll 1
        for (int base = quads.begin + (warp << log2_width); base < quads.end; base += quads_at_once << log2_apart) {
            const int first = base + lane % (1 << log2_width);
            share.quads = min(quads_at_once, ((quads.end - first - 1) >> log2_apart) + 1);
#pragma unroll
            for (int i = 0; i < quads_at_once; ++i) {
                const int quad = first + (i << log2_apart);
                share.row[i] = along_rows ? quad / (tile_n / 4) : quad % tile_m;
                share.column[i] = (along_rows ? quad % (tile_n / 4) : quad / tile_m) * 4;
            }
            Sums sums = {};
            add_share(sums, share);
            __syncwarp();
#pragma unroll 1
            for (int distance = 1 << log2_width; distance < 32; distance *= 2) {
#pragma unroll
                for (int i = 0; i < quads_at_once; ++i) {
                    add(sums[i], make_float4(__shfl_xor_sync(0xFFFFFFFF, sums[i].x, distance),
                                             __shfl_xor_sync(0xFFFFFFFF, sums[i].y, distance),
                                             __shfl_xor_sync(0xFFFFFFFF, sums[i].z, distance),
                                             __shfl_xor_sync(0xFFFFFFFF, sums[i].w, distance)));
                }
            }
#pragma unroll 1
            for (auto i = static_cast<int>(share.adder); i < share.quads; i += static_cast<int>(share.adders)) {
                int quad_row = share.row[0];
                int quad_column = share.column[0];
                float4 sum = sums[0];
#pragma unroll
                for (int j = 1; j < quads_at_once; ++j) {  // registers: no run-time index
                    if (i == j) {
                        quad_row = share.row[j];
                        quad_column = share.column[j];
                        sum = sums[j];
                    }
                }
                put(sum, quad_row, quad_column);
            }
            __syncwarp();
        }
    }

    /// Calls `visit(place, block, register)` for each four neighbouring registers and their place in shared memory.
    template <class Visit>
    __device__ __forceinline__ void for_each_sum(Visit&& visit) const
    {
        auto* const places = reinterpret_cast<float4*>(shared_.store[1][0]) + thread();
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
#pragma unroll
            for (int r = 0; r < registers; r += 4) {
                visit(places[(block * registers + r) / 4 * 128], block, r);
            }
        }
    }

    /// Calls `put(address, pair)` for each pair of neighbours that this thread holds of a (64, tile_n) block at
    /// `target`.
    template <int Pitch = tile_n, class Put>
    __device__ void put_rows(const float (&accumulators)[registers], float* target, Put&& put) const
    {
        const int thread = HopperReduction::thread();
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float* const line = target + (thread / 32 * 16 + i * 8 + thread % 32 / 4) * Pitch + 2 * (thread % 4);
#pragma unroll
            for (int j = 0; j < tile_n / 8; ++j) {
                put(line + 8 * j, make_float2(accumulators[4 * j + 2 * i], accumulators[4 * j + 2 * i + 1]));
            }
        }
    }

    const HopperArguments& arguments_;
    HopperShared<Config>& shared_;
    int consumer_;
};

}  // namespace tessera::kernels
