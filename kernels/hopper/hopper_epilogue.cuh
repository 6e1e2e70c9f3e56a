#pragma once

/// The epilogue of a consumer: writes its accumulators to D, or first sums up the parts of a tile that is shared.
///
/// The path to D is chosen at run time. If D is alpha * A * B and TMA can address it: registers, stmatrix, swizzled
/// shared memory, TMA store, while the next part is being converted. Otherwise: registers, fp32 in shared memory, and a
/// loop that applies the whole epilogue (kernels/common) row by row. The 128 threads of a consumer take part; in the
/// cooperative schedule, both consumers sum up shared tiles together.

#include <cstdint>
#include <utility>

#include "hopper_arguments.hpp"
#include "hopper_shared.cuh"
#include "hopper_shared_tile.cuh"
#include "hopper_work.cuh"
#include "kernels/common/epilogue.cuh"
#include "kernels/common/ptx.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

namespace detail {

/// Waits for the 128 threads of one consumer.
__device__ __forceinline__ void synchronize_consumer(int consumer)
{
    NamedBarrier<128>(static_cast<std::uint32_t>(consumer) + 1).synchronize();  // barrier 0 is the CTA's
}

}  // namespace detail

/// One consumer's side of the epilogue. Every function is executed by its 128 threads.
template <class Config>
class HopperEpilogue {
    static constexpr int tile_m = Config::config.tile_m;
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int blocks = Config::config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    static constexpr int buffers = Config::config.store_buffers;
    // A buffer that no store has used yet needs no wait. Counting them costs a register.
    static constexpr bool counts_fresh_buffers = buffers > 1 && Config::config.accumulators() < 128;
    using Accumulators = float[blocks][registers];

public:
    /// Construct after `await_kernel_before`: it reads the scales.
    __device__ HopperEpilogue(const HopperArguments& arguments, HopperShared<Config>& shared, int consumer)
        : arguments_(arguments), shared_(shared), consumer_(consumer), alpha_(Epilogue::scaled_alpha(arguments.gemm))
    {}

    /// Writes the consumer's rows of a whole tile. `row` and `column` are those of the first accumulator in D.
    __device__ void write(const Accumulators& accumulators, std::int64_t row, std::int64_t column, std::uint32_t batch)
    {
        if (tile_n <= 64 && arguments_.plain && arguments_.gemm.d_row_stride == 1) {
            write_columns(accumulators, row, column, batch);
        } else if (!arguments_.stores_by_tma) {
            write_general(accumulators, row, column, batch);
        } else if (arguments_.gemm.d_type == ElementType::f32) {
            write_wide(accumulators, static_cast<int>(row), static_cast<int>(column), static_cast<int>(batch));
        } else {
            write_narrow(accumulators, static_cast<int>(row), static_cast<int>(column), static_cast<int>(batch));
        }
    }

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
                                            std::uint32_t batch)
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
        const bool plain = arguments_.stores_by_tma && arguments_.gemm.n % 4 == 0;
        // One copy of this code serves both rounds: it is not in the instruction cache when a product reaches it.
#pragma unroll 1
        for (;;) {
            if (!of_layers) {
                synchronize_team();  // this CTA's part is completely written
                HopperSlice& shared_slice = shared_.slice[cooperative ? 0 : consumer_];
                if (leads) {
                    slice = tile.arrive(is_last, started);
                    if (lane() == 0) {
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

    /// Intra-CTA split-K, reduction across the two warpgroups: `lend` puts the second consumer's sums into its store
    /// buffers, and `add_lent` adds them to the first consumer's, which has the same elements in the same registers.
    __device__ __forceinline__ void lend(const Accumulators& accumulators) const
    {
        for_each_lent([&](float4& place, int block, int r) {
            const float* const d = &accumulators[block][r];
            place = make_float4(d[0], d[1], d[2], d[3]);
        });
    }
    __device__ __forceinline__ void add_lent(Accumulators& accumulators) const
    {
        for_each_lent([&](const float4& place, int block, int r) {
            float* const d = &accumulators[block][r];
            const float4 lent = place;
            d[0] += lent.x;
            d[1] += lent.y;
            d[2] += lent.z;
            d[3] += lent.w;
        });
    }

    /// Waits until the stores have read their shared memory, which must stay until then.
    __device__ void finish() const
    {
        if (thread() % 32 == 0 && warp() < buffers) {
            tma_wait_stores_read<0>();
        }
    }

private:
    // Special registers are read at each use: that is cheaper than keeping them beside the accumulators.
    __device__ static int thread() { return static_cast<int>(threadIdx.x) % 128; }
    __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
    __device__ static int warp() { return thread() / 32; }

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
            detail::synchronize_consumer(consumer_);
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
            float4 addends[parts_at_once][quads_at_once];
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
    __device__ __forceinline__ void for_each_lent(Visit&& visit) const
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
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            float* const line = target + (warp() * 16 + i * 8 + lane() / 4) * Pitch + 2 * (lane() % 4);
#pragma unroll
            for (int j = 0; j < tile_n / 8; ++j) {
                put(line + 8 * j, make_float2(accumulators[4 * j + 2 * i], accumulators[4 * j + 2 * i + 1]));
            }
        }
    }

    /// Calls `visit(row, column)` for each four neighbours of a (rows, Columns) part of the tile. They are distributed
    /// over `threads` threads so that a warp's accesses to D are adjacent.
    template <int Columns, class Visit>
    __device__ __forceinline__ void for_each_quad(int rows, int thread, int threads, Visit&& visit) const
    {
        const int quads = rows * (Columns / 4);
        if (arguments_.gemm.d_column_stride == 1) {
            for (int quad = thread; quad < quads; quad += threads) {
                visit(quad / (Columns / 4), quad % (Columns / 4) * 4);
            }
        } else {
            for (int quad = thread; quad < quads; quad += threads) {
                visit(quad % rows, quad / rows * 4);
            }
        }
    }

    /// Each buffer is stored by a different warp: issuing a store costs some 200 cycles, during which the others are at
    /// the next buffer.
    __device__ bool stores_buffer() const { return thread() == 32 * buffer_; }

    /// Returns the buffer of the consumer's next store, once TMA has read what it held.
    __device__ std::byte* next_buffer()
    {
        buffer_ = buffer_ + 1 == buffers ? 0 : buffer_ + 1;
        if (counts_fresh_buffers && fresh_buffers_ > 0) {
            --fresh_buffers_;
        } else {
            if (stores_buffer()) {
                tma_wait_stores_read<0>();
            }
            detail::synchronize_consumer(consumer_);
        }
        return shared_.store[consumer_][buffer_];
    }

    /// Stores the buffer. It is complete when all threads have called this.
    template <class Element, unsigned Columns, unsigned Rows>
    __device__ void store_buffer(const AnyTensorMap<3>& map, std::byte* buffer, int column, int row, int batch)
    {
        using Map = TensorMap<Element, Box<Columns, Rows, 1>, Swizzle::b128>;
        using Tile = SharedTile<Element, Box<Columns, Rows, 1>, Swizzle::b128>;
        make_visible_to_tma();
        // Shuffled into uniform registers; otherwise nvcc loops over the lanes' values although one lane is active.
        const std::int32_t coordinates[] = {of_first_lane(column), of_first_lane(row), of_first_lane(batch)};
        detail::synchronize_consumer(consumer_);
        if (stores_buffer()) {
            tma_store(reinterpret_cast<const Map&>(map), coordinates, *reinterpret_cast<Tile*>(buffer));
            tma_commit_stores();
        }
    }

    /// Calls `visit<first, columns>()` for each part of the tile's width that one store writes: `Width` columns each,
    /// then the rest.
    template <int Width, class Visit>
    __device__ __forceinline__ static void for_each_part(Visit&& visit)
    {
        [&]<int... Part>(std::integer_sequence<int, Part...>) {
            (visit.template operator()<Part * Width, Width>(), ...);
        }(std::make_integer_sequence<int, tile_n / Width>());
        if constexpr (tile_n % Width != 0) {
            visit.template operator()<tile_n / Width * Width, tile_n % Width>();
        }
    }

    /// Writes a 16-bit D, 64 columns (or the tile's width) at a time.
    __device__ void write_narrow(const Accumulators& accumulators, int row, int column, int batch)
    {
        constexpr int width = HopperConfig::store_width(tile_n, 2);
        const bool as_f16 = arguments_.gemm.d_type == ElementType::f16;
        // The row of the buffer whose address this lane passes to stmatrix.
        const int matrix_row = warp() * 16 + lane() % 16;
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
            for_each_part<width>([&]<int First, int Columns>() {
                std::byte* const buffer = next_buffer();
#pragma unroll
                for (int q = 0; q < Columns / 16; ++q) {
                    const float* const d = &accumulators[block][(First + q * 16) / 2];
                    std::uint32_t packed[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        packed[i] = detail::pack(scaled(d[2 * i], alpha_), scaled(d[2 * i + 1], alpha_), as_f16);
                    }
                    const int chunk = q * 2 + lane() / 16;  // of 16 bytes
                    store_matrices(buffer + swizzled(matrix_row, chunk), packed);
                }
                if constexpr (Columns % 16 != 0) {
                    const float* const d = &accumulators[block][(First + Columns - 8) / 2];
                    const std::uint32_t packed[2] = {detail::pack(scaled(d[0], alpha_), scaled(d[1], alpha_), as_f16),
                                                     detail::pack(scaled(d[2], alpha_), scaled(d[3], alpha_), as_f16)};
                    store_matrices(buffer + swizzled(matrix_row, Columns / 8 - 1), packed);
                }
                store_buffer<std::uint16_t, Columns, 64>(Columns == width ? arguments_.d : arguments_.d_rest, buffer,
                                                         column + First, row + block * 64, batch);
            });
        }
    }

    /// Writes an fp32 D, 32 columns (or the tile's width) at a time.
    __device__ void write_wide(const Accumulators& accumulators, int row, int column, int batch)
    {
        constexpr int width = HopperConfig::store_width(tile_n, 4);
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
            for_each_part<width>([&]<int First, int Columns>() {
                std::byte* const buffer = next_buffer();
                put_wide<First, Columns>(accumulators[block], buffer, alpha_);
                store_buffer<float, Columns, 64>(Columns == width ? arguments_.d : arguments_.d_rest, buffer,
                                                 column + First, row + block * 64, batch);
            });
        }
    }

    /// Writes a narrow tile of a column-major D straight from the registers, eight rows of a column at a time. It is
    /// little code, which matters because it is not in the instruction cache when a small product reaches it.
    __device__ __forceinline__ void write_columns(const Accumulators& accumulators, std::int64_t row,
                                                  std::int64_t column, std::uint32_t batch) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        const float alpha = Epilogue::scaled_alpha(gemm);
        const std::int64_t first_row = row + warp() * 16 + lane() / 4;
        const std::int64_t first_column = column + 2 * (lane() % 4);
        const std::int64_t first = batch * gemm.d_batch_stride + first_row + first_column * gemm.d_column_stride;
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
#pragma unroll
            for (int r = 0; r < registers; ++r) {
                const int down = block * 64 + r / 2 % 2 * 8;
                const int across = r / 4 * 8 + r % 2;
                if (first_row + down < gemm.m && first_column + across < gemm.n) {
                    detail::store_element(gemm.d, first + down + across * gemm.d_column_stride, gemm.d_type,
                                          scaled(accumulators[block][r], alpha_));
                }
            }
        }
    }

    /// Writes any D with any epilogue. The loop over the parts is not unrolled: one copy of the epilogue's code.
    __device__ __forceinline__ void write_general(const Accumulators& accumulators, std::int64_t row,
                                                  std::int64_t column, std::uint32_t batch)
    {
        constexpr int columns = tile_n % 32 == 0 ? 32 : tile_n % 16 == 0 ? 16 : 8;
        constexpr int parts = tile_n / columns;
        const Epilogue epilogue(arguments_.gemm, batch);
        std::byte* const buffer = shared_.store[consumer_][0];
#pragma unroll 1
        for (int i = 0; i < blocks * parts; ++i) {
            detail::synchronize_consumer(consumer_);  // the previous part has been read
#pragma unroll
            for (int block = 0; block < blocks; ++block) {
                for_each_part<columns>([&]<int First, int Columns>() {
                    // No run-time index, because accumulators are registers.
                    if (block * parts + First / columns == i) {
                        put_wide<First, Columns>(accumulators[block], buffer, 1.0F);
                    }
                });
            }
            detail::synchronize_consumer(consumer_);
            for_each_quad<columns>(64, thread(), 128, [&](int quad_row, int quad_column) {
                const float4 quad = *reinterpret_cast<const float4*>(buffer + swizzled(quad_row, quad_column / 4));
                const float values[4] = {quad.x, quad.y, quad.z, quad.w};
                epilogue.store<4>(row + i / parts * 64 + quad_row, column + i % parts * columns + quad_column, values);
            });
        }
    }

    /// Puts columns First to First + Columns of the accumulators into a swizzled buffer (64, Columns) as fp32.
    template <int First, int Columns>
    __device__ void put_wide(const float (&accumulators)[registers], std::byte* buffer, float alpha) const
    {
#pragma unroll
        for (int j = 0; j < Columns / 8; ++j) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float* const d = &accumulators[First / 2 + 4 * j + 2 * i];
                const int buffer_row = warp() * 16 + i * 8 + lane() / 4;
                const int chunk = 2 * j + lane() % 4 / 2;
                *reinterpret_cast<float2*>(buffer + swizzled(buffer_row, chunk) + lane() % 2 * 8) =
                    make_float2(scaled(d[0], alpha), scaled(d[1], alpha));
            }
        }
    }

    /// As in kernels/common/epilogue.cuh; + 0 so that padding of K does not change the sign of a zero.
    __device__ static float scaled(float sum, float alpha) { return __fmul_rn(alpha, __fadd_rn(sum, 0.0F)); }

    /// Byte offset of a 16-byte chunk in a buffer with 128-byte swizzle. Rows are 128 bytes apart even if the box is
    /// narrower.
    __device__ static int swizzled(int row, int chunk) { return row * 128 + (chunk ^ row % 8) * 16; }

    const HopperArguments& arguments_;
    HopperShared<Config>& shared_;
    int consumer_;
    float alpha_;  // times the scales of A and B
    int buffer_ = buffers - 1;
    int fresh_buffers_ = buffers;  // no store has used them yet
};

}  // namespace tessera::kernels
