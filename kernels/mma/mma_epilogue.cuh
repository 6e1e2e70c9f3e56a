#pragma once

/// What follows the products: split-K's sum, and the way of the accumulators to D.

#include <cstdint>

#include "../gemm/epilogue.cuh"
#include "mma_arguments.hpp"
#include "mma_config.hpp"
#include "tessera/device/mma_sync.cuh"

namespace tessera::kernels {

/// A CTA's epilogue. Every function is called by all threads of the CTA.
template <class Config>
class MmaEpilogue {
    static constexpr MmaConfig config = Config::config;
    static constexpr int threads = config.threads();
    static constexpr int rows = config.warp_m() / 16;    // fragments of a warp along M
    static constexpr int columns = config.warp_n() / 8;  // along N
    static constexpr int pitch = config.tile_n + mma_staging_pad;

public:
    using Accumulators = FragmentC<float, 16, 8>[rows][columns];

    __device__ MmaEpilogue(const MmaArguments& arguments, std::byte* shared)
        : arguments_(arguments), staging_(reinterpret_cast<float*>(shared))
    {}

    /// Adds up the parts of a tile that is split along K, in the order of K: the CTA that comes last has the sums.
    /// @return true in the CTA that has the sums
    __device__ __forceinline__ bool add_parts(Accumulators& accumulators, std::uint32_t tile, std::uint32_t split) const
    {
        constexpr std::int64_t part = static_cast<std::int64_t>(config.tile_m) * config.tile_n;
        float* const parts = arguments_.partials + tile * arguments_.splits * part + 4 * threadIdx.x;
        for_each(accumulators, [&](float(&values)[4], int i) {
            __stcg(reinterpret_cast<float4*>(parts + split * part + i * 4 * threads),
                   make_float4(values[0], values[1], values[2], values[3]));
        });
        __threadfence();
        __syncthreads();  // also: all have read the last stage
        auto* const last = reinterpret_cast<std::uint32_t*>(staging_);
        if (threadIdx.x == 0) {
            const std::uint32_t arrived = atomicAdd(arguments_.arrivals + tile, 1);
            *last = arrived + 1 == arguments_.splits ? 1 : 0;
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
        for (std::uint32_t from = 0; from < arguments_.splits; ++from) {
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

    /// Asks for the tile of C to be brought into L2, if the epilogue reads it in vectors.
    __device__ __forceinline__ void prefetch_c(const TilePosition& tile) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        if (gemm.beta == 0.0F || !arguments_.in_vectors) {
            return;
        }
        const auto bytes = static_cast<int>(size_of(gemm.c_type));
        const int lines = config.tile_n * bytes / 128;  // of a row; a tile that is narrower has one
        const auto* const c = static_cast<const char*>(gemm.c.data);
        for (int i = static_cast<int>(threadIdx.x); i < config.tile_m * max(lines, 1); i += threads) {
            const std::int64_t row = static_cast<std::int64_t>(tile.row) * config.tile_m + i / max(lines, 1);
            const std::int64_t column =
                static_cast<std::int64_t>(tile.column) * config.tile_n + i % max(lines, 1) * (128 / bytes);
            if (row < gemm.m && column < gemm.n) {
                ptx::prefetch_to_l2(c + (tile.batch * gemm.c.batch_stride + row * gemm.c.row_stride + column) * bytes);
            }
        }
    }

    /// Finishes the tile and writes it. The accumulators pass through shared memory, as many rows at a time as there is room
    /// for: then a warp has rows of D as long as the tile, and one copy of the code serves all, although registers have no
    /// index.
    __device__ __forceinline__ void store(const Accumulators& accumulators, const TilePosition& tile, int warp_m,
                                          int warp_n) const
    {
        const Epilogue epilogue(arguments_.gemm, tile.batch);
        const auto thread = static_cast<int>(threadIdx.x);
        const std::int64_t first_row = static_cast<std::int64_t>(tile.row) * config.tile_m + thread / groups;
        const std::int64_t column = static_cast<std::int64_t>(tile.column) * config.tile_n + thread % groups * 4;
        const auto fragments = static_cast<int>(arguments_.staged_fragments);
        const int warp_rows = 16 * fragments;  // of each warp, at a time
        float* const put =
            staging_ + (warp_rows * warp_m + thread % 32 / 4) * pitch + warp_n * config.warp_n() + thread % 4 * 2;
        const float* const get = staging_ + thread / groups * pitch + thread % groups * 4;
#pragma unroll 1
        for (int done = 0; done < rows; done += fragments) {
            __syncthreads();  // all have read the last stage, or what was staged before
#pragma unroll
            for (int i = 0; i < rows; ++i) {
                if (i >= done && i < done + fragments) {
                    float* const place = put + (i - done) * 16 * pitch;
#pragma unroll
                    for (int j = 0; j < columns; ++j) {
                        const auto& sum = accumulators[i][j];
                        *reinterpret_cast<float2*>(place + j * 8) = make_float2(sum[0], sum[1]);
                        *reinterpret_cast<float2*>(place + 8 * pitch + j * 8) = make_float2(sum[2], sum[3]);
                    }
                }
            }
            __syncthreads();
            // A row of the staging memory, and the row of the tile that it has.
            int staged = 0;
#pragma unroll 1
            for (int warp = 0; warp < config.warps_m; ++warp) {
                const std::int64_t of_warp = first_row + warp * config.warp_m() + done * 16;
#pragma unroll 1
                for (int row = 0; row < warp_rows; row += at_once * rows_at_once) {
                    if (arguments_.in_vectors) {
                        store_rows(epilogue, get + staged * pitch, of_warp + row, column, tile.batch);
                    } else {
#pragma unroll 1
                        for (int i = 0; i < at_once * rows_at_once; i += rows_at_once) {
                            const float4 four = *reinterpret_cast<const float4*>(get + (staged + i) * pitch);
                            const float values[4] = {four.x, four.y, four.z, four.w};
                            epilogue.store_or_pair(of_warp + row + i, column, values);
                        }
                    }
                    staged += at_once * rows_at_once;
                }
            }
        }
    }

private:
    static constexpr int groups = config.tile_n / 4;       // of four columns
    static constexpr int rows_at_once = threads / groups;  // of all threads
    static constexpr int at_once = 16 / rows_at_once < 4 ? 16 / rows_at_once : 4;
    static_assert(threads % groups == 0 && 16 % rows_at_once == 0);

    /// Finishes and stores four columns of `at_once` rows: several at a time, so that loads and stores do not wait for each
    /// other. Only where the operands of the epilogue come in vectors: MmaArguments::in_vectors.
    /// @param staged  the first row's sums; the others follow at every `rows_at_once` rows
    __device__ __forceinline__ void store_rows(const Epilogue& epilogue, const float* staged, std::int64_t row,
                                               std::int64_t column, std::uint32_t batch) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        if (column >= gemm.n) {
            return;
        }
        const auto is_inside = [&](int i) { return row + i * rows_at_once < gemm.m; };
        float values[at_once * 4];
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
            const float4 four = *reinterpret_cast<const float4*>(staged + i * rows_at_once * pitch);
            values[4 * i] = detail::scaled(four.x, epilogue.alpha());
            values[4 * i + 1] = detail::scaled(four.y, epilogue.alpha());
            values[4 * i + 2] = detail::scaled(four.z, epilogue.alpha());
            values[4 * i + 3] = detail::scaled(four.w, epilogue.alpha());
        }
        detail::apply_epilogue(
            values, gemm, [](float(&)[at_once * 4]) {},
            [&](float(&c)[at_once * 4]) {
                const std::int64_t first = batch * gemm.c.batch_stride + row * gemm.c.row_stride + column;
#pragma unroll
                for (int i = 0; i < at_once; ++i) {
                    float four[4] = {};
                    if (is_inside(i)) {
                        detail::load_vector(gemm.c.data, first + i * rows_at_once * gemm.c.row_stride, gemm.c_type,
                                            four);
                    }
                    copy_four(four, c, i);
                }
            },
            [&](float(&bias)[at_once * 4]) {
                float four[4];
                detail::load_vector(gemm.bias, column, gemm.bias_type, four);
#pragma unroll
                for (int i = 0; i < at_once; ++i) {
                    copy_four(four, bias, i);
                }
            },
            [](const float(&)[at_once * 4]) {});
        const std::int64_t first = batch * gemm.d_batch_stride + row * gemm.d_row_stride + column;
#pragma unroll
        for (int i = 0; i < at_once; ++i) {
            if (is_inside(i)) {
                const float four[4] = {values[4 * i], values[4 * i + 1], values[4 * i + 2], values[4 * i + 3]};
                detail::store_vector(gemm.d, first + i * rows_at_once * gemm.d_row_stride, gemm.d_type, four);
            }
        }
    }

    __device__ __forceinline__ static void copy_four(const float (&from)[4], float (&to)[at_once * 4], int i)
    {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
            to[4 * i + j] = from[j];
        }
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
