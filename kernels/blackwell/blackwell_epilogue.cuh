#pragma once

/// The epilogue of the Blackwell kernel: moves an accumulator from tensor memory through registers to D.
///
/// Warps 0 to 3 run it; each has 32 rows to itself and waits for no other epilogue warp. A warp reads 16 columns at a
/// time, applies alpha, C, bias and activation, and rounds. The operations and their order are those of
/// kernels/gemm/epilogue.cuh, so the bits are the same. It collects up to 128 bytes of each row in swizzled shared memory
/// and lets TMA store them while it goes on. If TMA cannot address C or D, it stores elements directly.

#include <cuda/ptx>

#include <cstdint>

#include "blackwell_arguments.hpp"
#include "blackwell_config.hpp"
#include "blackwell_shared_tile.cuh"
#include "blackwell_storage.cuh"
#include "kernels/gemm/epilogue.cuh"
#include "tessera/device/output_partition.cuh"
#include "tessera/device/tmem.cuh"

namespace tessera::kernels {

namespace detail {

inline constexpr std::uint32_t chunk_columns = 16;  // in registers at a time

}  // namespace detail

/// One warp of the epilogue.
template <class Config>
class BlackwellEpilogue {
    static constexpr std::uint32_t columns_of_tile = Config::config.block_n;

public:
    using Tile = OutputTile<32, columns_of_tile>;  // the warp's rows of a block
    using Accumulator = TmemAccumulator<Config::config.accumulator_columns(), Config::config.group>;

    /// @param warp  which 32 lanes of tensor memory the warp can access: its index in the warpgroup
    __device__ BlackwellEpilogue(const BlackwellArguments& arguments, StagingBuffers& staging, BarrierWord& c_loaded,
                                 BarriersPublished published, std::uint32_t warp)
        : arguments_(arguments),
          gemm_(arguments.gemm),
          staging_(staging),
          c_loaded_(c_loaded, published),
          warp_(warp),
          lane_(threadIdx.x % 32),
          alpha_(Epilogue::scaled_alpha(arguments.gemm)),
          wide_(gemm_.d_type != ElementType::f32),
          store_columns_(wide_ ? wide_columns : narrow_columns)
    {}

    /// Writes one accumulator to the warp's rows of D or, of a tile that others will store, to the workspace. Calls `release`
    /// once the accumulator has been read.
    template <class Release>
    __device__ void store(const Tile& tile, const Accumulator& accumulator, const BlackwellSharedTile<Config>& shared,
                          Release release)
    {
        if (tile.first_row() >= gemm_.m) {
            release();
            return;
        }
        const auto columns_left = static_cast<std::int64_t>(gemm_.n) - tile.first_column();
        const auto inside = static_cast<std::uint32_t>(min(columns_left, static_cast<std::int64_t>(columns_of_tile)));
        const std::uint32_t in_box = store_columns_ - 1;  // a box has a power of two of columns
        const std::uint32_t columns = (inside + in_box) & ~in_box;
        if (shared.is_shared()) {
            if (!shared.others_have_arrived()) {
#pragma unroll 1
                for (std::uint32_t first = 0; first < columns; first += detail::chunk_columns) {
                    shared.put(first / detail::chunk_columns,
                               accumulator.template load_rows<detail::chunk_columns>(warp_, first).wait());
                }
                if (!shared.arrive()) {
                    release();
                    return;
                }
            }
            shared.reset();
        }
        const bool through_shared = arguments_.stores_by_tma;
#pragma unroll 1
        for (std::uint32_t first = 0; first < columns; first += detail::chunk_columns) {
            const std::uint32_t in_store = first & in_box;
            if (in_store == 0 && through_shared) {
                begin_store(tile, first);
            }
            Values values{};
            if (arguments_.k_steps > 0) {  // otherwise the accumulator is undefined
                values = accumulator.template load_rows<detail::chunk_columns>(warp_, first).wait();
            }
            if (first + detail::chunk_columns == columns) {
                release();
            }
            if (shared.is_shared()) {
                shared.add_all(first / detail::chunk_columns, values);
            }
            const std::int64_t row = tile.first_row() + lane_;
            const std::int64_t column = tile.first_column() + first;
            if (through_shared) {
                finish(row, column, tile.batch(), values, in_store / detail::chunk_columns);
                put(values, in_store / detail::chunk_columns);
                if (in_store + detail::chunk_columns == store_columns_) {
                    end_store(tile, first);
                }
            } else {
                store_directly(row, column, tile.batch(), values);
            }
        }
    }

    /// Waits until the last stores have read their shared memory, which must stay until then.
    __device__ void drain()
    {
        if (lane_ == 0) {
            tma_wait_stores_read<0>();
        }
        __syncwarp();
    }

private:
    using Values = RegisterTile<float, detail::chunk_columns>;

    static constexpr std::uint32_t wide_columns = Config::config.store_columns(2);
    static constexpr std::uint32_t narrow_columns = Config::config.store_columns(4);

    /// Returns the lane's 16-byte piece `index` of its row in the buffer, whose rows have `RowBytes`. The swizzle is the one
    /// of that span: pieces of a row are exchanged by the number of its 128-byte line.
    template <std::uint32_t RowBytes>
    __device__ uint4& piece(std::uint32_t index) const
    {
        const std::uint32_t line = lane_ * RowBytes / 128;
        std::byte* const row = staging_.bytes[buffer_] + lane_ * RowBytes;
        return *reinterpret_cast<uint4*>(row + (index ^ (line % (RowBytes / 16))) * 16);
    }
    __device__ uint4& wide_piece(std::uint32_t index) const { return piece<wide_columns * 2>(index); }
    __device__ uint4& narrow_piece(std::uint32_t index) const { return piece<narrow_columns * 4>(index); }

    /// Waits until the buffer is free, and loads C into it if beta is not zero.
    __device__ void begin_store(const Tile& tile, std::uint32_t first)
    {
        buffer_ ^= 1U;
        if (lane_ == 0) {
            tma_wait_stores_read<staging_buffers - 1>();
        }
        __syncwarp();
        if (gemm_.beta != 0.0F) {
            if (lane_ == 0) {
                c_loaded_.arrive_and_expect(32 * (wide_ ? wide_columns * 2 : narrow_columns * 4));
                const std::int32_t origin[3] = {static_cast<std::int32_t>(tile.first_column() + first),
                                                static_cast<std::int32_t>(tile.first_row()),
                                                arguments_.c_batched ? static_cast<std::int32_t>(tile.batch()) : 0};
                tma_load(arguments_.c, staging_.bytes[buffer_], c_loaded_, origin);
            }
            c_loaded_.wait(c_parity_);
            c_parity_ = c_parity_ == PhaseParity::even ? PhaseParity::odd : PhaseParity::even;
        }
    }

    __device__ void end_store(const Tile& tile, std::uint32_t first)
    {
        make_visible_to_tma();
        __syncwarp();
        if (lane_ == 0) {
            if (wide_) {
                tma_store(arguments_.d, tile.template part<32, wide_columns>(0, first / wide_columns),
                          staging_.bytes[buffer_]);
            } else {
                tma_store(arguments_.d, tile.template part<32, narrow_columns>(0, first / narrow_columns),
                          staging_.bytes[buffer_]);
            }
            tma_commit_stores();
        }
    }

    /// Computes act(alpha * x + beta * C + bias) of a chunk, with C from the buffer. The pre-activation goes straight to
    /// global memory.
    __device__ __forceinline__ void finish(std::int64_t row, std::int64_t column, std::uint32_t batch, Values& values,
                                           std::uint32_t place) const
    {
        values.transform([&](float sum) { return detail::scaled(sum, alpha_); });
        const auto columns = static_cast<int>(min(static_cast<std::int64_t>(detail::chunk_columns), gemm_.n - column));
        const std::int64_t inside = min(row, gemm_.m - 1);  // lanes below D compute values that nobody stores
        detail::apply_epilogue(
            values.values, gemm_, [&](auto& scales) { Epilogue::load_scales(gemm_, inside, column, columns, scales); },
            [&](auto& c) { get(c, place); },
            [&](auto& bias) { Epilogue::load_bias(gemm_, inside, column, columns, false, bias); },
            [&](const auto& x) {
                if (gemm_.pre_activation.data != nullptr && row < gemm_.m && columns > 0) {
                    store_pre_activation(gemm_, batch, row, column, columns, x);
                }
            });
    }

    /// Writes a chunk to the lane's row of the buffer, rounded to D's type.
    __device__ __forceinline__ void put(const Values& values, std::uint32_t place) const
    {
        if (wide_) {
            const bool half = gemm_.d_type == ElementType::f16;
            std::uint32_t words[detail::chunk_columns / 2];
#pragma unroll
            for (std::uint32_t j = 0; j < detail::chunk_columns / 2; ++j) {
                words[j] = detail::pack(values[2 * j], values[2 * j + 1], half);
            }
            wide_piece(place * 2) = make_uint4(words[0], words[1], words[2], words[3]);
            wide_piece(place * 2 + 1) = make_uint4(words[4], words[5], words[6], words[7]);
            return;
        }
#pragma unroll
        for (std::uint32_t j = 0; j < detail::chunk_columns; j += 4) {
            narrow_piece(place * 4 + j / 4) =
                make_uint4(__float_as_uint(values[j]), __float_as_uint(values[j + 1]), __float_as_uint(values[j + 2]),
                           __float_as_uint(values[j + 3]));
        }
    }

    /// Reads a chunk of C from the lane's row of the buffer.
    __device__ __forceinline__ void get(float (&values)[detail::chunk_columns], std::uint32_t place) const
    {
        if (wide_) {
            const bool half = gemm_.d_type == ElementType::f16;
#pragma unroll
            for (std::uint32_t i = 0; i < 2; ++i) {
                const uint4 words = wide_piece(place * 2 + i);
                const std::uint32_t list[4] = {words.x, words.y, words.z, words.w};
#pragma unroll
                for (std::uint32_t j = 0; j < 4; ++j) {
                    detail::unpack(list[j], half, values[8 * i + 2 * j], values[8 * i + 2 * j + 1]);
                }
            }
            return;
        }
#pragma unroll
        for (std::uint32_t j = 0; j < detail::chunk_columns; j += 4) {
            const uint4 words = narrow_piece(place * 4 + j / 4);
            values[j] = __uint_as_float(words.x);
            values[j + 1] = __uint_as_float(words.y);
            values[j + 2] = __uint_as_float(words.z);
            values[j + 3] = __uint_as_float(words.w);
        }
    }

    /// Stores like the SIMT kernels, for a C or D that TMA cannot address.
    __device__ void store_directly(std::int64_t row, std::int64_t column, std::uint32_t batch, Values& values) const
    {
        const Epilogue epilogue(gemm_, batch);
#pragma unroll
        for (std::uint32_t j = 0; j < detail::chunk_columns; j += 4) {
            const float group[4] = {values[j], values[j + 1], values[j + 2], values[j + 3]};
            epilogue.store(row, column + j, group);
        }
    }

    const BlackwellArguments& arguments_;  // the kernel parameter
    const GemmArguments& gemm_;
    StagingBuffers& staging_;
    Barrier<FilledByTma, Ready> c_loaded_;
    std::uint32_t warp_;
    std::uint32_t lane_;
    std::uint32_t buffer_ = 0;
    PhaseParity c_parity_ = PhaseParity::even;
    float alpha_;                  // times the scales of A and B
    bool wide_;                    // D has 16-bit elements
    std::uint32_t store_columns_;  // that one TMA store writes
};

}  // namespace tessera::kernels
