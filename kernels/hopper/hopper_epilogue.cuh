#pragma once

/// The epilogue of a consumer: finishes its accumulators and writes them to D.
///
/// The path is chosen at run time.
///
/// - A plain product, if TMA can address D: from the registers through swizzled shared memory to the TMA store, while the
///   next part is being converted (hopper_store.cuh).
/// - The frequent epilogues: the same way, with code of their own (hopper_streamed.cuh).
/// - Any other epilogue (hopper_any_epilogue.cuh): the same way, but in a loop over parts (hopper_part.cuh) with one copy of
///   all operations. Other gated pairs and a narrow tile of a column-major D go this way, too, if need be without TMA.
/// - Otherwise: through shared memory in fp32, to a loop that finishes and stores row by row (kernels/gemm).

#include <cstdint>
#include <utility>

#include "hopper_any_epilogue.cuh"
#include "hopper_arguments.hpp"
#include "hopper_gate.cuh"
#include "hopper_multiply.cuh"
#include "hopper_part.cuh"
#include "hopper_shared.cuh"
#include "hopper_staging.cuh"
#include "hopper_store.cuh"
#include "hopper_streamed.cuh"
#include "kernels/gemm/epilogue.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

/// One consumer's side of the epilogue. Every function is executed by its 128 threads.
template <class Config>
class HopperEpilogue {
    static constexpr int tile_m = Config::config.tile_m;
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int blocks = Config::config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    using Accumulators = float[blocks][registers];
    using Staging = HopperStaging<Config>;
    using SlotsOfC = ReadSlots<HopperRing<Config>>;

public:
    /// A thread's elements of the bias, on their way to shared memory.
    struct Bias {
        static constexpr int elements = Config::config.bias_elements();
        static constexpr int per_thread = (elements + 127) / 128;
        float values[per_thread];
    };

    /// Construct after `await_kernel_before`: it reads the scales.
    __device__ HopperEpilogue(const HopperArguments& arguments, HopperShared<Config>& shared, int consumer)
        : arguments_(arguments),
          shared_(shared),
          staging_(shared, consumer),
          consumer_(consumer),
          alpha_(Epilogue::scaled_alpha(arguments.gemm))
    {}

    /// Loads the bias of a tile that `write` will write, if there is one.
    /// @param row, column  of the consumer's first accumulator in D
    __device__ __forceinline__ Bias load_bias(bool will_write, int row, int column) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        Bias bias;
#pragma unroll
        for (float& value : bias.values) {
            value = -0.0F;  // a sum with it is the other summand, also -0
        }
        if (will_write && gemm.bias_axis != BiasAxis::none && writes_parts()) {
            const bool per_row = gemm.bias_axis == BiasAxis::per_row;
            const HopperColumns<Config> columns(gemm, column_of_d<Config>(gemm, column));
#pragma unroll
            for (int i = 0; i < Bias::per_thread; ++i) {
                const int in_tile = thread() + i * 128;
                const int index = !per_row ? columns[in_tile] : row + in_tile < gemm.m ? row + in_tile : -1;
                if (index >= 0) {
                    bias.values[i] = detail::load_element(gemm.bias, index, gemm.bias_type);
                }
            }
        }
        return bias;
    }

    /// Brings the scales of the consumer's tile into L1, which it has room for, unlike shared memory.
    /// @param row, column  of the consumer's first accumulator in D
    __device__ __forceinline__ void prefetch_scales(int row, int column) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        const auto prefetch = [](const float* scales, int first, int elements, std::int64_t end) {
            constexpr int in_line = 32;  // floats of a cache line
            // One more than whole lines, because the vector may begin anywhere.
            const int index = first + min(thread() * in_line, elements - 1);
            if (scales != nullptr && (thread() - 1) * in_line < elements && index < end) {
                ptx::prefetch_to_l1(scales + index);
            }
        };
        prefetch(gemm.row_scales, row, Config::config.consumer_m(), gemm.m);
        if (is_gated<Config>(gemm) && gemm.gating == Gating::side_by_side) {
            const auto ups = static_cast<int>(gemm.n / 2);
            prefetch(gemm.column_scales, column / 2, tile_n / 2, ups);
            prefetch(gemm.column_scales, ups + column / 2, tile_n / 2, gemm.n);
        } else {
            prefetch(gemm.column_scales, column, tile_n, gemm.n);
        }
    }

    /// Brings a C that the ring does not carry near, before the tile's sums are complete.
    /// @param row, column  of the consumer's first accumulator in D
    __device__ __forceinline__ void prefetch_c(bool will_write, int row, int column, int batch) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        if (!will_write || gemm.beta == 0.0F || arguments_.work.c_slots > 0) {
            return;
        }
        constexpr int line_bytes = 128;
        const bool along_rows = gemm.c.column_stride == 1;
        const auto element_bytes = static_cast<int>(size_of(gemm.c_type));
        const auto rows = static_cast<int>(min(gemm.m - row, static_cast<std::int64_t>(Config::config.consumer_m())));
        const auto columns = static_cast<int>(min(gemm.n - column, static_cast<std::int64_t>(tile_n)));
        if (rows <= 0 || columns <= 0) {
            return;
        }
        const int run_bytes = (along_rows ? columns : rows) * element_bytes;
        const int runs = along_rows ? rows : columns;
        const int in_run = run_bytes / line_bytes + 1;  // and one more, because the run may begin anywhere
        const std::int64_t stride = along_rows ? gemm.c.row_stride : gemm.c.column_stride;
        const std::byte* const first =
            static_cast<const std::byte*>(gemm.c.data) +
            (batch * gemm.c.batch_stride + row * gemm.c.row_stride + column * gemm.c.column_stride) * element_bytes;
#pragma unroll 1
        for (int i = thread(); i < runs * in_run; i += 128) {
            const int in_line = min(i % in_run * line_bytes, run_bytes - element_bytes);
            ptx::prefetch_to_l2(first + i / in_run * stride * element_bytes + in_line);
        }
    }

    /// Writes the consumer's rows of a whole tile.
    /// @tparam ElementBytes  of A and B
    /// @param c              the slots with the tile of C, if the ring carries it; `releaser` frees them
    template <int ElementBytes>
    __device__ __forceinline__ void write(Accumulators& accumulators, SlotsOfC c, const HopperReleaser& releaser,
                                          const HopperTile& tile)
    {
        if (arguments_.finishing == HopperFinishing::plain) {
            HopperTileStore<Config>(arguments_, staging_, tile.row, tile.column, tile.batch)
                .store(accumulators, [&](float sum) { return detail::scaled(sum, alpha_); });
        } else if (Config::config.streams(ElementBytes) && arguments_.finishing != HopperFinishing::other) {
            ptx::stay_a_branch();
            HopperStreamed<Config>(arguments_, shared_, staging_, consumer_, alpha_)
                .write(accumulators, std::move(c), releaser, tile);
            return;
        } else if (writes_parts()) {
            ptx::stay_a_branch();
            any_epilogue().write_parts(accumulators, c, tile);
        } else {
            any_epilogue().write_rows(accumulators, tile);
        }
        releaser.release(std::move(c));
    }

    /// Waits until the stores have read their shared memory, which must stay until then.
    __device__ void finish() const { staging_.finish(); }

    /// Puts the bias of the next tile that `write` writes into shared memory, where every thread of the consumer finds it.
    __device__ void put_bias(const Bias& bias)
    {
        const HopperFinishing finishing = arguments_.finishing;
        const bool streams_bias = finishing != HopperFinishing::plain && finishing != HopperFinishing::residual &&
                                  finishing != HopperFinishing::other;
        if (!streams_bias && (arguments_.gemm.bias_axis == BiasAxis::none || !writes_parts())) {
            return;
        }
        synchronize_consumer(consumer_);  // the previous tile's has been read
#pragma unroll
        for (int i = 0; i < Bias::per_thread; ++i) {
            if (thread() + i * 128 < Bias::elements) {
                shared_.bias[consumer_][thread() + i * 128] = bias.values[i];
            }
        }
        synchronize_consumer(consumer_);
    }

private:
    // Special registers are read at each use: that is cheaper than keeping them beside the accumulators.
    __device__ static int thread() { return static_cast<int>(threadIdx.x) % 128; }

    __device__ bool writes_columns() const { return tile_n <= 64 && arguments_.gemm.d_row_stride == 1; }
    __device__ bool writes_parts() const
    {
        return arguments_.stores_by_tma || writes_columns() || is_gated<Config>(arguments_.gemm);
    }
    __device__ HopperAnyEpilogue<Config> any_epilogue() { return {arguments_, shared_, staging_, consumer_, alpha_}; }

    const HopperArguments& arguments_;
    HopperShared<Config>& shared_;
    Staging staging_;
    int consumer_;
    float alpha_;  // times the scales of A and B
};

}  // namespace tessera::kernels
