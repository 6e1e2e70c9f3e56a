#pragma once

/// What a consumer does with its accumulators: write them to D, or, of a tile that is shared, sum the parts up first.
///
/// The way to D is chosen at run time. If D is alpha * A * B and TMA can address it: registers, stmatrix, swizzled
/// shared memory, TMA store, while the next part is being converted. Otherwise: registers, shared memory as fp32, and a
/// loop that applies the whole epilogue (kernels/common) row by row.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "hopper_arguments.hpp"
#include "hopper_shared.cuh"
#include "hopper_work.cuh"
#include "kernels/common/epilogue.cuh"

namespace tessera::kernels {

namespace detail {

/// Waits for the 128 threads of one consumer.
__device__ __forceinline__ void synchronize_consumer(int consumer)
{
    asm volatile("barrier.cta.sync.aligned %0, 128;" ::"r"(consumer + 1) : "memory");  // 0 is the whole CTA's
}

/// Stores four 8x8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8. Not in
/// cuda::ptx.
__device__ __forceinline__ void store_matrices(const void* row, const std::uint32_t (&values)[4])
{
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(values[0]),
                 "r"(values[1]), "r"(values[2]), "r"(values[3])
                 : "memory");
}

__device__ __forceinline__ std::uint32_t pack(float low, float high, bool as_f16)
{
    if (as_f16) {
        const __half2 pair = __floats2half2_rn(low, high);
        return *reinterpret_cast<const std::uint32_t*>(&pair);
    }
    const __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const std::uint32_t*>(&pair);
}

}  // namespace detail

/// One consumer's side of the way out. Every function is executed by its 128 threads.
template <class Config>
class HopperEpilogue {
    static constexpr int tile_m = Config::config.tile_m;
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int blocks = Config::config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    static constexpr int buffers = HopperConfig::hopper_store_buffers;
    using Accumulators = float[blocks][registers];

public:
    __device__ HopperEpilogue(const HopperArguments& arguments, HopperShared<Config>& shared, int consumer)
        : arguments_(arguments),
          shared_(shared),
          consumer_(consumer),
          thread_(static_cast<int>(threadIdx.x) % 128),
          lane_(static_cast<int>(threadIdx.x) % 32),
          warp_(thread_ / 32)
    {}

    /// Writes the consumer's rows of a whole tile; `row` and `column` are D's, of the first accumulator.
    __device__ void write(const Accumulators& accumulators, std::int64_t row, std::int64_t column, std::uint32_t batch)
    {
        if (!arguments_.stores_by_tma) {
            write_general(accumulators, row, column, batch);
        } else if (arguments_.gemm.d_type == ElementType::f32) {
            write_wide(accumulators, static_cast<int>(row), static_cast<int>(column), static_cast<int>(batch));
        } else {
            write_narrow(accumulators, static_cast<int>(row), static_cast<int>(column), static_cast<int>(batch));
        }
    }

    /// Adds this cluster's part of a shared tile to the others'. Whoever comes last writes the tile: the sum in the
    /// order of K, whoever that is. Nobody waits for anybody.
    __device__ void share(const Accumulators& accumulators, const HopperQueue& queue, std::uint32_t tile,
                          std::uint32_t cluster, std::uint32_t rank, std::uint32_t cluster_size, int consumer_row,
                          std::int64_t row, std::int64_t column, std::uint32_t batch)
    {
        const HopperSharers sharers = queue.sharers(tile);
        const auto part = [&](std::uint32_t sharer) {
            const std::uint64_t slot = std::uint64_t{queue.partial_slot(sharer, tile)} * cluster_size + rank;
            return arguments_.workspace.partials + slot * (tile_m * tile_n) + consumer_row * tile_n;
        };
        float* const own = part(cluster);
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                float* const line = own + (block * 64 + warp_ * 16 + i * 8 + lane_ / 4) * tile_n + 2 * (lane_ % 4);
#pragma unroll
                for (int j = 0; j < tile_n / 8; ++j) {
                    __stcg(reinterpret_cast<float2*>(line + 8 * j),
                           make_float2(accumulators[block][4 * j + 2 * i], accumulators[block][4 * j + 2 * i + 1]));
                }
            }
        }
        // All parts of one tile count at the counter of the first sharer's slot.
        std::uint32_t* const counter =
            arguments_.workspace.arrivals +
            (std::uint64_t{queue.partial_slot(sharers.first, tile)} * cluster_size + rank) * Config::config.consumers +
            consumer_row / Config::config.consumer_m();
        __threadfence();
        detail::synchronize_consumer(consumer_);
        if (thread_ == 0) {
            const bool is_last = atomicAdd(counter, 1U) == sharers.last - sharers.first;
            if (is_last) {
                *counter = 0;  // for the next launch
            }
            shared_.is_last[consumer_] = is_last ? 1U : 0U;
            __threadfence();
        }
        detail::synchronize_consumer(consumer_);
        if (shared_.is_last[consumer_] == 0) {
            return;
        }
        const Epilogue epilogue(arguments_.gemm, batch);
        for_each_quad<tile_n>(blocks * 64, [&](int quad_row, int quad_column) {
            float sum[4] = {};
            for (std::uint32_t sharer = sharers.first; sharer <= sharers.last; ++sharer) {
                const float4 addend =
                    __ldcg(reinterpret_cast<const float4*>(part(sharer) + quad_row * tile_n + quad_column));
                sum[0] += addend.x;
                sum[1] += addend.y;
                sum[2] += addend.z;
                sum[3] += addend.w;
            }
            epilogue.store<4>(row + quad_row, column + quad_column, sum);
        });
    }

    /// Waits until the stores have read their shared memory: before the CTA exits.
    __device__ void finish() const
    {
        if (thread_ == 0) {
            tma_wait_stores_read<0>();
        }
    }

private:
    /// Calls `visit(row, column)` for each four neighbours of a (rows, Columns) part of the tile, spread over the
    /// threads so that a warp's accesses to D are neighbours.
    template <int Columns, class Visit>
    __device__ void for_each_quad(int rows, Visit&& visit) const
    {
        const int quads = rows * (Columns / 4);
        if (arguments_.gemm.d_column_stride == 1) {
            for (int quad = thread_; quad < quads; quad += 128) {
                visit(quad / (Columns / 4), quad % (Columns / 4) * 4);
            }
        } else {
            for (int quad = thread_; quad < quads; quad += 128) {
                visit(quad % rows, quad / rows * 4);
            }
        }
    }

    /// The buffer of the consumer's next store, when TMA has read what it held.
    __device__ std::byte* next_buffer()
    {
        if (thread_ == 0) {
            tma_wait_stores_read<buffers - 1>();
        }
        detail::synchronize_consumer(consumer_);
        buffer_ = (buffer_ + 1) % buffers;
        return shared_.store[consumer_][buffer_];
    }

    /// Stores the buffer, which is complete when all threads have come here.
    template <class Element, unsigned Columns, unsigned Rows>
    __device__ void store_buffer(std::byte* buffer, int column, int row, int batch)
    {
        using Map = TensorMap<Element, Box<Columns, Rows, 1>, Swizzle::b128>;
        using Tile = SharedTile<Element, Box<Columns, Rows, 1>, Swizzle::b128>;
        make_visible_to_tma();
        detail::synchronize_consumer(consumer_);
        if (thread_ == 0) {
            tma_store(reinterpret_cast<const Map&>(arguments_.d), {column, row, batch},
                      *reinterpret_cast<Tile*>(buffer));
            tma_commit_stores();
        }
    }

    /// A 16-bit D, 64 columns (or the tile's) at a time.
    __device__ void write_narrow(const Accumulators& accumulators, int row, int column, int batch)
    {
        constexpr int columns = tile_n < 64 ? tile_n : 64;
        const bool as_f16 = arguments_.gemm.d_type == ElementType::f16;
        const float alpha = Epilogue::scaled_alpha(arguments_.gemm);
        const int matrix_row = warp_ * 16 + lane_ % 16;  // the row of the buffer whose address this lane gives
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
#pragma unroll
            for (int part = 0; part < tile_n / columns; ++part) {
                std::byte* const buffer = next_buffer();
#pragma unroll
                for (int q = 0; q < columns / 16; ++q) {
                    const float* const d = &accumulators[block][(part * columns + q * 16) / 2];
                    std::uint32_t packed[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        packed[i] = detail::pack(scaled(d[2 * i], alpha), scaled(d[2 * i + 1], alpha), as_f16);
                    }
                    const int chunk = q * 2 + lane_ / 16;  // of 16 bytes
                    detail::store_matrices(buffer + swizzled(matrix_row, chunk), packed);
                }
                store_buffer<std::uint16_t, columns, 64>(buffer, column + part * columns, row + block * 64, batch);
            }
        }
    }

    /// An fp32 D, 32 columns (or the tile's) at a time.
    __device__ void write_wide(const Accumulators& accumulators, int row, int column, int batch)
    {
        constexpr int columns = tile_n < 32 ? tile_n : 32;
        const float alpha = Epilogue::scaled_alpha(arguments_.gemm);
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
#pragma unroll
            for (int part = 0; part < tile_n / columns; ++part) {
                std::byte* const buffer = next_buffer();
                put_wide<columns>(accumulators[block], part, buffer, alpha);
                store_buffer<float, columns, 64>(buffer, column + part * columns, row + block * 64, batch);
            }
        }
    }

    /// Any D and any epilogue.
    __device__ void write_general(const Accumulators& accumulators, std::int64_t row, std::int64_t column,
                                  std::uint32_t batch)
    {
        constexpr int columns = tile_n < 32 ? tile_n : 32;
        const Epilogue epilogue(arguments_.gemm, batch);
        std::byte* const buffer = shared_.store[consumer_][0];
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
#pragma unroll
            for (int part = 0; part < tile_n / columns; ++part) {
                detail::synchronize_consumer(consumer_);  // the last part has been read
                put_wide<columns>(accumulators[block], part, buffer, 1.0F);
                detail::synchronize_consumer(consumer_);
                for_each_quad<columns>(64, [&](int quad_row, int quad_column) {
                    const float4 quad =
                        *reinterpret_cast<const float4*>(buffer + swizzled(quad_row, quad_column / 4));
                    const float values[4] = {quad.x, quad.y, quad.z, quad.w};
                    epilogue.store<4>(row + block * 64 + quad_row, column + part * columns + quad_column, values);
                });
            }
        }
    }

    /// Puts a (64, Columns) part of the accumulators into a swizzled buffer as fp32.
    template <int Columns>
    __device__ void put_wide(const float (&accumulators)[registers], int part, std::byte* buffer, float alpha) const
    {
#pragma unroll
        for (int j = 0; j < Columns / 8; ++j) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                const float* const d = &accumulators[part * Columns / 2 + 4 * j + 2 * i];
                const int buffer_row = warp_ * 16 + i * 8 + lane_ / 4;
                const int chunk = 2 * j + lane_ % 4 / 2;
                *reinterpret_cast<float2*>(buffer + swizzled(buffer_row, chunk) + lane_ % 2 * 8) =
                    make_float2(scaled(d[0], alpha), scaled(d[1], alpha));
            }
        }
    }

    /// As kernels/common/epilogue.cuh does it: + 0 so that no padding of K shows in the sign of a zero.
    __device__ static float scaled(float sum, float alpha) { return __fmul_rn(alpha, __fadd_rn(sum, 0.0F)); }

    /// Byte offset of a 16-byte chunk in a buffer with TMA's 128-byte swizzle. Rows begin 128 bytes apart, also where the
    /// box is narrower.
    __device__ static int swizzled(int row, int chunk) { return row * 128 + (chunk ^ row % 8) * 16; }

    const HopperArguments& arguments_;
    HopperShared<Config>& shared_;
    int consumer_;
    int thread_;
    int lane_;
    int warp_;
    int buffer_ = 0;
};

}  // namespace tessera::kernels
