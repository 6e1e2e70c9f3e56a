#pragma once

/// What follows the products: the sum of a tile's parts, and the way of the accumulators to D.

#include <cstdint>

#include "../gemm/epilogue.cuh"
#include "mma_arguments.hpp"
#include "mma_config.hpp"
#include "tessera/device/mma_sync.cuh"

namespace tessera::kernels {

/// A CTA's epilogue. Every function is called by all threads of the CTA.
/// @tparam GatesInTurn  columns of gates in the tile before as many of ups, where B has them side by side
template <class Config, int GatesInTurn>
class MmaEpilogue {
    static constexpr MmaConfig config = Config::config;
    static constexpr int threads = config.threads();
    static constexpr int rows = config.warp_m() / 16;    // fragments of a warp along M
    static constexpr int columns = config.warp_n() / 8;  // along N
    static constexpr int pitch = config.tile_n + mma_staging_pad;
    // What a warp stages for itself: fragments along M at a time, floats from row to row, and floats of all.
    static constexpr int own_fragments = mma_own_fragments<Config>;
    static constexpr int own_pitch = config.warp_n() + mma_staging_pad;
    static constexpr int own_floats = 16 * own_fragments * own_pitch;
    static constexpr int own_bytes = config.threads() / 32 * own_floats * static_cast<int>(sizeof(float));
    static constexpr std::uint32_t own_stages = (own_bytes + config.stage_bytes() - 1) / config.stage_bytes();

public:
    using Accumulators = FragmentC<float, 16, 8>[rows][columns];

    __device__ MmaEpilogue(const MmaArguments& arguments, std::byte* shared)
        : arguments_(arguments), staging_(reinterpret_cast<float*>(shared))
    {}

    /// Adds up the parts of a divided tile, in the order of K: the CTA that comes last has the sums. (It could keep its own
    /// of two parts in registers, but the code for that made the largest tiles spill.)
    /// @return true in the CTA that has the sums
    __device__ __forceinline__ bool add_parts(Accumulators& accumulators, const MmaWork& work) const
    {
        constexpr std::int64_t part = static_cast<std::int64_t>(config.tile_m) * config.tile_n;
        const std::uint32_t tile = work.tile - arguments_.whole_tiles;
        float* const parts = arguments_.partials + tile * arguments_.parts * part + 4 * threadIdx.x;
        for_each(accumulators, [&](float(&values)[4], int i) {
            __stcg(reinterpret_cast<float4*>(parts + work.part * part + i * 4 * threads),
                   make_float4(values[0], values[1], values[2], values[3]));
        });
        __threadfence();
        __syncthreads();  // also: all have read the last stage
        auto* const last = reinterpret_cast<std::uint32_t*>(staging_);
        if (threadIdx.x == 0) {
            const std::uint32_t arrived = atomicAdd(arguments_.arrivals + tile, 1);
            *last = arrived + 1 == arguments_.parts ? 1 : 0;
        }
        __syncthreads();
        if (*last == 0) {
            return false;
        }
        __threadfence();
        if (threadIdx.x == 0) {
            arguments_.arrivals[tile] = 0;  // for the next launch
        }
        for_each(accumulators, [&](float(&values)[4], int i) { values[0] = values[1] = values[2] = values[3] = 0; });
#pragma unroll 1
        for (std::uint32_t from = 0; from < arguments_.parts; ++from) {
            for_each(accumulators, [&](float(&values)[4], int i) {
                const float4 four = __ldcg(reinterpret_cast<const float4*>(parts + from * part + i * 4 * threads));
                values[0] += four.x;
                values[1] += four.y;
                values[2] += four.z;
                values[3] += four.w;
            });
        }
        return true;
    }

    /// Finishes the tile and writes it. The accumulators pass through shared memory: then a thread has neighbours of a row, and
    /// one copy of the code serves all, although registers have no index.
    __device__ __forceinline__ void store(const Accumulators& accumulators, const TilePosition& tile, int warp_m,
                                          int warp_n) const
    {
        // A GPU with less shared memory may run code that was compiled for one with more.
        if (arguments_.in_vectors && (own_stages <= 2 || arguments_.stages >= own_stages)) {
            store_vectors(accumulators, tile, warp_m, warp_n);
        } else {
            store_any(accumulators, tile, warp_m, warp_n);
        }
    }

private:
    /// Where a column of a staged row is, in floats. The quads of 32 columns in turn are exchanged in pairs: then neither the
    /// accesses of neighbouring quads nor those of every second one have bank conflicts.
    __device__ __forceinline__ static constexpr int place_of(int column) { return column ^ (column / 32 % 2 * 4); }

    /// Writes the fragments along M of each warp that have their turn, from `done` on, to the CTA's staging memory, when all
    /// threads have read what was there.
    __device__ __forceinline__ void stage(const Accumulators& accumulators, int done, int warp_m, int warp_n) const
    {
        const auto fragments = static_cast<int>(arguments_.staged_fragments);
        __syncthreads();
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int row = 16 * fragments * warp_m + lane / 4;
        const int column = warp_n * config.warp_n() + lane % 4 * 2;
        // Columns that are a multiple of eight further on are so in memory, too, within the 32 that `place_of` treats alike.
        float* const even = staging_ + row * pitch + place_of(column);
        float* const odd = staging_ + row * pitch + place_of(column + 32) - 32;
#pragma unroll
        for (int i = 0; i < rows; ++i) {
            if (i >= done && i < done + fragments) {
#pragma unroll
                for (int j = 0; j < columns; ++j) {
                    const auto& sum = accumulators[i][j];
                    float* const place = (j / 4 % 2 == 0 ? even : odd) + (i - done) * 16 * pitch;
                    *reinterpret_cast<float2*>(place + j * 8) = make_float2(sum[0], sum[1]);
                    *reinterpret_cast<float2*>(place + 8 * pitch + j * 8) = make_float2(sum[2], sum[3]);
                }
            }
        }
        __syncthreads();
    }

    /// The row of the tile that a staged row has.
    __device__ __forceinline__ static int row_of(int staged, int done, int fragments)
    {
        const int shift = 4 + __ffs(fragments) - 1;  // a power of two; a division would be 20 instructions
        return (staged >> shift) * config.warp_m() + 16 * done + (staged & ((1 << shift) - 1));
    }

    /// The column of the tile that has the first of the gates which become four columns from `column` on, where B has them side
    /// by side.
    __device__ __forceinline__ static int gate_of(int column)
    {
        const int pair = column / 2;
        return pair / GatesInTurn * (2 * GatesInTurn) + pair % GatesInTurn;
    }

    /// Stages, finishes and stores the tile, as many rows of each warp at a time as there is room for, and four columns of a row:
    /// of pairs that are side by side, two gates and their ups. Neighbouring threads have neighbours of D in memory.
    __device__ __forceinline__ void store_any(const Accumulators& accumulators, const TilePosition& tile, int warp_m,
                                              int warp_n) const
    {
        constexpr int groups = config.tile_n / 4;
        constexpr int warp_rows = 16 * config.warps_m;  // that are staged of each fragment
        static_assert(threads % groups == 0 && groups * warp_rows % threads == 0 &&
                      (warp_rows & (warp_rows - 1)) == 0 && (threads & (threads - 1)) == 0);
        const Epilogue epilogue(arguments_.gemm, tile.batch);
        const auto thread = static_cast<int>(threadIdx.x);
        const auto fragments = static_cast<int>(arguments_.staged_fragments);
        const int staged_rows = warp_rows * fragments;  // a power of two
        const bool down_columns = arguments_.gemm.d_column_stride != 1;
        const int rows_at_once = down_columns ? min(threads, staged_rows) : threads / groups;
        const int first_row = down_columns ? thread & (rows_at_once - 1) : thread / groups;
        const int shift = __ffs(rows_at_once) - 1;
        const bool apart = arguments_.gemm.gating == Gating::side_by_side;
#pragma unroll 1
        for (int done = 0; done < rows; done += fragments) {
            stage(accumulators, done, warp_m, warp_n);
            int staged = first_row;
            int in_tile = 4 * (down_columns ? thread >> shift : thread % groups);
            const float* get = staging_ + place_of(apart ? gate_of(in_tile) : in_tile);
            int to_up = place_of(gate_of(in_tile) + GatesInTurn) - place_of(gate_of(in_tile));
            // One loop goes down the rows and then to the next columns. With two, one inside the other, ptxas holds the main
            // loop's counters in no uniform registers, and products are 4 % slower.
#pragma unroll 1
            while (in_tile < config.tile_n) {
                const float* const from = get + staged * pitch;
                float4 four;
                if (apart) {
                    const float2 gates = *reinterpret_cast<const float2*>(from);
                    const float2 ups = *reinterpret_cast<const float2*>(from + to_up);
                    four = make_float4(gates.x, ups.x, gates.y, ups.y);
                } else {
                    four = *reinterpret_cast<const float4*>(from);
                }
                const float values[4] = {four.x, four.y, four.z, four.w};
                epilogue.store_or_pair<true>(
                    static_cast<std::int64_t>(tile.row) * config.tile_m + row_of(staged, done, fragments),
                    static_cast<std::int64_t>(tile.column) * config.tile_n + in_tile, values);
                staged += rows_at_once;
                if (staged >= staged_rows) {
                    staged = first_row;
                    in_tile += 4 * (threads >> shift);
                    get = staging_ + place_of(apart ? gate_of(in_tile) : in_tile);
                    to_up = place_of(gate_of(in_tile) + GatesInTurn) - place_of(gate_of(in_tile));
                }
            }
        }
    }

    /// Where an element that a warp stages for itself is, in floats. As for `place_of`, quads are exchanged in pairs, here of every
    /// second row, too: eight threads that read 32 bytes each may have several rows.
    __device__ __forceinline__ static constexpr int own_place(int row, int column)
    {
        return row * own_pitch + (column ^ (column / 32 + row) % 2 * 4);
    }

    /// Writes `own_fragments` fragments along M, from `done` on, to the warp's own staging memory.
    __device__ __forceinline__ static void stage_own(const Accumulators& accumulators, int done, float* own)
    {
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const int row = lane / 4;
        const int column = lane % 4 * 2;
        float* const even = own + own_place(row, column);
        float* const odd = own + own_place(row, column + 32) - 32;
#pragma unroll
        for (int i = 0; i < rows; ++i) {
            if (i / own_fragments * own_fragments == done) {
#pragma unroll
                for (int j = 0; j < columns; ++j) {
                    const auto& sum = accumulators[i][j];
                    float* const place = (j / 4 % 2 == 0 ? even : odd) + i % own_fragments * 16 * own_pitch;
                    *reinterpret_cast<float2*>(place + j * 8) = make_float2(sum[0], sum[1]);
                    *reinterpret_cast<float2*>(place + 8 * own_pitch + j * 8) = make_float2(sum[2], sum[3]);
                }
            }
        }
        __syncwarp();
    }

    /// Stages, finishes and stores the tile, if MmaArguments::in_vectors: a warp its own part, and a thread eight columns of
    /// several rows at a time, so that their accesses do not wait for each other. The next sums and rows of C come meanwhile.
    __device__ __forceinline__ void store_vectors(const Accumulators& accumulators, const TilePosition& tile,
                                                  int warp_m, int warp_n) const
    {
        constexpr int threads_of_row = config.warp_n() / 8;
        constexpr int rows_at_once = 32 / threads_of_row;
        constexpr int at_once = 16 / rows_at_once;  // a fragment along M has its turn
        static_assert(16 % rows_at_once == 0 && rows_at_once % 2 == 0);
        // Else the accumulators need the registers.
        constexpr bool reads_ahead = own_fragments == rows;
        const GemmArguments& gemm = arguments_.gemm;
        const int lane = static_cast<int>(threadIdx.x) % 32;
        const QuadPair quads(gemm, lane % threads_of_row);
        const int own_row = lane / threads_of_row;
        const std::int64_t row =
            static_cast<std::int64_t>(tile.row) * config.tile_m + warp_m * config.warp_m() + own_row;
        const std::int64_t column =
            static_cast<std::int64_t>(tile.column) * config.tile_n + warp_n * config.warp_n() + quads.first;
        const bool has_first = column < gemm.n;
        const bool has_second = column + quads.distance < gemm.n;
        float* const own = staging_ + static_cast<int>(threadIdx.x) / 32 * own_floats;
        const float* const get_first = own + own_place(own_row, quads.first);
        const float* const get_second = own + own_place(own_row, quads.first + quads.distance);
        const VectorRows c_rows(gemm.c.data, gemm.c_type,
                                tile.batch * gemm.c.batch_stride + row * gemm.c.row_stride + column, gemm.c.row_stride);
        const VectorRows d_rows(gemm.d, gemm.d_type,
                                tile.batch * gemm.d_batch_stride + row * gemm.d_row_stride + column, gemm.d_row_stride);
        const float alpha = Epilogue::scaled_alpha(gemm);
        // Rows of D from the thread's first on; without columns, none.
        const auto left =
            has_first ? static_cast<int>(min(gemm.m - row, static_cast<std::int64_t>(config.warp_m()))) : 0;
        RawVector c[at_once];
        const auto load_c = [&](int fragment) {
#pragma unroll
            for (int i = 0; i < at_once; ++i) {
                const int at = 16 * fragment + i * rows_at_once;
                if (at < left) {
                    c[i].load(c_rows.at(at), gemm.c_type, quads, has_second);
                }
            }
        };
        float4 sums[2 * at_once];
        const auto load_sums = [&](int staged) {
#pragma unroll
            for (int i = 0; i < 2 * at_once; ++i) {
                const float* const from = i % 2 == 0 ? get_first : get_second;
                sums[i] = *reinterpret_cast<const float4*>(from + (16 * staged + i / 2 * rows_at_once) * own_pitch);
            }
        };
        if (gemm.beta != 0.0F) {
            load_c(0);
        }
        float bias[8];
        if (gemm.bias_axis != BiasAxis::none && has_first) {
            const VectorRows rows_of_bias(gemm.bias, gemm.bias_type, column, 0);
            RawVector raw;
            raw.load(rows_of_bias.at(0), gemm.bias_type, quads, has_second);
            raw.unpack(gemm.bias_type, quads, bias);
        }
        __syncthreads();  // all have read the last stage
#pragma unroll 1
        for (int done = 0; done < rows; done += own_fragments) {
            if (own_fragments < rows) {
                __syncwarp();  // the warp has read what was there
            }
            stage_own(accumulators, done, own);
            if constexpr (reads_ahead) {
                load_sums(0);
            }
#pragma unroll 1
            for (int staged = 0; staged < own_fragments; ++staged) {
                if constexpr (!reads_ahead) {
                    load_sums(staged);
                }
                float values[8 * at_once];
#pragma unroll
                for (int i = 0; i < 2 * at_once; ++i) {
                    values[4 * i] = detail::scaled(sums[i].x, alpha);
                    values[4 * i + 1] = detail::scaled(sums[i].y, alpha);
                    values[4 * i + 2] = detail::scaled(sums[i].z, alpha);
                    values[4 * i + 3] = detail::scaled(sums[i].w, alpha);
                }
                if (reads_ahead && staged + 1 < own_fragments) {
                    load_sums(staged + 1);
                }
                detail::prepare_activation(
                    values, gemm, [](auto&& /*use*/) {},
                    [&](auto&& use) {
#pragma unroll
                        for (int i = 0; i < at_once; ++i) {
                            float of_row[8];
                            c[i].unpack(gemm.c_type, quads, of_row);
                            use(of_row, 8 * i);
                        }
                        load_c(done + staged + 1);  // none behind the last
                    },
                    [&](auto&& use) {
#pragma unroll
                        for (int i = 0; i < at_once; ++i) {
                            use(bias, 8 * i);
                        }
                    });
                detail::activate(values, gemm.activation);
#pragma unroll
                for (int i = 0; i < at_once; ++i) {
                    const int at = 16 * (done + staged) + i * rows_at_once;
                    if (at < left) {
                        store_row(values + 8 * i, d_rows.at(at), quads, has_second);
                    }
                }
            }
        }
    }

    /// The two groups of four columns that a thread stores: neighbours if D has 16 bits, so that it stores 16 bytes, or half of
    /// its warp's columns apart.
    struct QuadPair {
        int first;
        int distance;

        __device__ QuadPair(const GemmArguments& gemm, int group)
            : first(gemm.d_type == ElementType::f32 ? 4 * group : 8 * group),
              distance(gemm.d_type == ElementType::f32 ? config.warp_n() / 2 : 4)
        {}
        __device__ bool are_neighbours() const { return distance == 4; }
    };

    /// A thread's place in the rows of a matrix.
    struct VectorRows {
        const char* first;
        std::int64_t stride;  // in bytes

        __device__ VectorRows(const void* data, ElementType type, std::int64_t index, std::int64_t row_stride)
            : first(static_cast<const char*>(data) + index * static_cast<std::int64_t>(size_of(type))),
              stride(row_stride * static_cast<std::int64_t>(size_of(type)))
        {}
        __device__ __forceinline__ const char* at(int row) const { return first + row * stride; }
    };

    /// Two quads of C or of the bias, as they are in memory: nothing waits for them before they are unpacked.
    struct RawVector {
        uint4 first;  // of 16-bit elements, both if they are neighbours
        uint4 second;

        __device__ __forceinline__ void load(const char* from, ElementType type, const QuadPair& quads, bool has_second)
        {
            if (type != ElementType::f32 && quads.are_neighbours()) {
                first = *reinterpret_cast<const uint4*>(from);
            } else if (type != ElementType::f32) {
                load_half(first, from);
                if (has_second) {
                    load_half(second, from + quads.distance * 2);
                }
            } else {
                first = *reinterpret_cast<const uint4*>(from);
                if (has_second) {
                    second = *reinterpret_cast<const uint4*>(from + quads.distance * 4);
                }
            }
        }

        __device__ __forceinline__ void unpack(ElementType type, const QuadPair& quads, float (&to)[8]) const
        {
            if (type == ElementType::f32) {
                const std::uint32_t words[8] = {first.x,  first.y,  first.z,  first.w,
                                                second.x, second.y, second.z, second.w};
#pragma unroll
                for (int j = 0; j < 8; ++j) {
                    to[j] = __uint_as_float(words[j]);
                }
                return;
            }
            const bool is_f16 = type == ElementType::f16;
            const bool in_first = quads.are_neighbours();
            detail::unpack(first.x, is_f16, to[0], to[1]);
            detail::unpack(first.y, is_f16, to[2], to[3]);
            detail::unpack(in_first ? first.z : second.x, is_f16, to[4], to[5]);
            detail::unpack(in_first ? first.w : second.y, is_f16, to[6], to[7]);
        }

    private:
        __device__ __forceinline__ static void load_half(uint4& to, const char* from)
        {
            const uint2 half = *reinterpret_cast<const uint2*>(from);
            to.x = half.x;
            to.y = half.y;
        }
    };

    /// Rounds and stores eight columns of a row of D.
    __device__ __forceinline__ void store_row(const float* values, const char* place, const QuadPair& quads,
                                              bool has_second) const
    {
        const ElementType type = arguments_.gemm.d_type;
        auto* const to = const_cast<char*>(place);
        if (type == ElementType::f32) {
            *reinterpret_cast<float4*>(to) = make_float4(values[0], values[1], values[2], values[3]);
            if (has_second) {
                *reinterpret_cast<float4*>(to + quads.distance * 4) =
                    make_float4(values[4], values[5], values[6], values[7]);
            }
            return;
        }
        const bool as_f16 = type == ElementType::f16;
        *reinterpret_cast<uint4*>(to) =
            make_uint4(detail::pack(values[0], values[1], as_f16), detail::pack(values[2], values[3], as_f16),
                       detail::pack(values[4], values[5], as_f16), detail::pack(values[6], values[7], as_f16));
    }

    template <class Function>
    __device__ __forceinline__ static void for_each(Accumulators& accumulators, Function&& function)
    {
#pragma unroll
        for (int i = 0; i < rows; ++i) {
#pragma unroll
            for (int j = 0; j < columns; ++j) {
                function(accumulators[i][j].values, i * columns + j);
            }
        }
    }

    const MmaArguments& arguments_;
    float* staging_;  // (16 * warps_m * staged_fragments, pitch)
};

}  // namespace tessera::kernels
