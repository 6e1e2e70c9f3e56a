#pragma once

/// The epilogue of a consumer: finishes its accumulators and writes them to D.
///
/// The path is chosen at run time.
///
/// - D addressable by TMA: registers, swizzled shared memory, TMA store, while the next part is being converted. A bias per
///   column with none, relu or gelu_tanh is applied on the way, if D has 16 bits. Otherwise bias, C and activation are
///   applied to all accumulators before (hopper_finish.cuh): bias from shared memory, C from the slots of the ring after
///   the tile's stages.
/// - With a C that the ring does not carry, a pre-activation (through the other store buffer) or a D of 8 bits: the same
///   way, but 32 or 16 columns at a time with all operations. One copy of the code serves all of them.
/// - Gated pairs: all operations in place (hopper_gate.cuh), then the left half of the tile by TMA or as below.
/// - A narrow tile of a column-major D: straight from the registers, in the same parts.
/// - Otherwise: through shared memory in fp32, to a loop that finishes and stores row by row (kernels/gemm).

#include <cstdint>
#include <utility>

#include "hopper_arguments.hpp"
#include "hopper_finish.cuh"
#include "hopper_gate.cuh"
#include "hopper_multiply.cuh"
#include "hopper_part.cuh"
#include "hopper_shared.cuh"
#include "hopper_staging.cuh"
#include "hopper_store.cuh"
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

    using Part = HopperPart<Config>;
    using Gate = HopperGate<Config>;

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
        Bias bias{};
        if (will_write && gemm.bias_axis != BiasAxis::none && writes_parts()) {
            const bool per_row = gemm.bias_axis == BiasAxis::per_row;
            const int first = (per_row ? row : column) + thread();
            const std::int64_t end = per_row ? gemm.m : gemm.n;
            if (Gate::is_gated(gemm) && !per_row) {
                ptx::stay_a_branch();
                Gate::load_bias(gemm, column, thread(), bias.values);
                return bias;
            }
#pragma unroll
            for (int i = 0; i < Bias::per_thread; ++i) {
                if (first + i * 128 < end) {
                    bias.values[i] = detail::load_element(gemm.bias, first + i * 128, gemm.bias_type);
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
        if (Gate::is_gated(gemm) && gemm.gating == Gating::side_by_side) {
            const auto ups = static_cast<int>(gemm.n / 2);
            prefetch(gemm.column_scales, column / 2, tile_n / 2, ups);
            prefetch(gemm.column_scales, ups + column / 2, tile_n / 2, gemm.n);
        } else {
            prefetch(gemm.column_scales, column, tile_n, gemm.n);
        }
    }

    /// Writes the consumer's rows of a whole tile.
    /// @tparam ElementBytes  of A and B
    /// @param tile_row       the consumer's first row in the tile
    /// @param row, column    of the first accumulator in D
    /// @param c              the slots with the tile of C, if the ring carries it; `releaser` frees them
    template <int ElementBytes>
    __device__ __forceinline__ void write(Accumulators& accumulators, SlotsOfC c, const HopperReleaser& releaser,
                                          int tile_row, int row, int column, int batch)
    {
        if (arguments_.finishing == HopperFinishing::plain) {
            HopperTileStore<Config, false>(arguments_, staging_)
                .store(accumulators, [&](float sum, int) { return detail::scaled(sum, alpha_); }, row, column, batch);
        } else if (Config::config.streams_bias(ElementBytes) && arguments_.finishing != HopperFinishing::other) {
            ptx::stay_a_branch();
            write_with_bias(accumulators, row, column, batch);
        } else {
            write_other(accumulators, c, releaser, tile_row, row, column, batch);
        }
        releaser.release(std::move(c));
    }

    /// Waits until the stores have read their shared memory, which must stay until then.
    __device__ void finish() const { staging_.finish(); }

    /// Puts the bias of the next tile that `write` writes into shared memory, where every thread of the consumer finds it.
    __device__ void put_bias(const Bias& bias)
    {
        if (arguments_.gemm.bias_axis == BiasAxis::none || !writes_parts()) {
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
    /// Finishes and stores a tile whose finishing is one with a bias: straight-line code.
    __device__ __forceinline__ void write_with_bias(const Accumulators& accumulators, int row, int column, int batch)
    {
        HopperTileStore<Config, false> tile(arguments_, staging_);
        const float* const elements = shared_.bias[consumer_] + HopperPlace().column();
        if (arguments_.finishing == HopperFinishing::bias) {
            const float floor = arguments_.gemm.activation == ActivationKind::relu ? 0.0F : -__int_as_float(0x7F800000);
            const auto finish = [&](float sum, int index) {
                const float x = with_bias(sum, elements, index);
                return x < floor ? 0.0F : x;  // keeps NaN
            };
            tile.store_16_bit(accumulators, finish, row, column, batch);
        } else {
            ptx::stay_a_branch();
            const auto finish = [&](float sum, int index) {
                return detail::gelu_tanh(with_bias(sum, elements, index));
            };
            tile.store_16_bit(accumulators, finish, row, column, batch);
        }
    }

    /// Writes a tile whose finishing is `other`. Frees the slots of C early if it has read them.
    __device__ __forceinline__ void write_other(Accumulators& accumulators, SlotsOfC& c, const HopperReleaser& releaser,
                                                int tile_row, int row, int column, int batch)
    {
        bool is_general = !writes_parts();
        if (!is_general && !finishes_in_place(c)) {
            write_parts(accumulators, c, tile_row, row, column, batch);
        } else if (!is_general) {
            column = Gate::is_gated(arguments_.gemm) ? column / 2 : column;
            finish_in_place(accumulators, c.take_all(), releaser, row, column);
            is_general = Config::config.gates() && (!arguments_.stores_by_tma || is_float8(arguments_.gemm.d_type));
            if (!is_general) {
                HopperTileStore<Config, Config::config.gates()>(arguments_, staging_)
                    .store(accumulators, [](float value, int) { return value; }, row, column, batch);
            }
        }
        if (is_general) {
            write_general(accumulators, row, column, batch);
        }
    }

    /// alpha * sum + bias. @param elements  the bias of the thread's first column  @param index  register of a block
    __device__ __forceinline__ float with_bias(float sum, const float* elements, int index) const
    {
        const float2 pair = *reinterpret_cast<const float2*>(elements + index / 4 * 8);
        return __fadd_rn(detail::scaled(sum, alpha_), index % 2 == 0 ? pair.x : pair.y);
    }

    // Special registers are read at each use: that is cheaper than keeping them beside the accumulators.
    __device__ static int thread() { return static_cast<int>(threadIdx.x) % 128; }

    __device__ bool writes_columns() const { return tile_n <= 64 && arguments_.gemm.d_row_stride == 1; }
    __device__ bool stores_pre_activation_by_tma() const
    {
        return Config::config.stores_two_matrices() && arguments_.stores_pre_activation_by_tma;
    }
    __device__ bool writes_parts() const
    {
        return arguments_.stores_by_tma || writes_columns() || Gate::is_gated(arguments_.gemm);
    }

    __device__ bool finishes_in_place(const SlotsOfC& c) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        return Gate::is_gated(gemm) ||
               (arguments_.stores_by_tma && gemm.pre_activation.data == nullptr && !is_float8(gemm.d_type) &&
                !gemm.has_scale_vectors() && (gemm.beta == 0.0F || c.count() > 0));
    }

    /// Replaces the accumulators, or their left half if they are gated pairs, by the elements of D. Frees the slots of C
    /// as soon as it has been added.
    /// @param row, column  of the first element in D
    __device__ __forceinline__ void finish_in_place(Accumulators& accumulators, SlotsOfC c,
                                                    const HopperReleaser& releaser, int row, int column) const
    {
        using Finish = HopperFinish<Config>;
        const GemmArguments& gemm = arguments_.gemm;
        Finish::scale(accumulators, alpha_);
        if constexpr (Config::config.carries_c()) {
            if (gemm.beta != 0.0F) {
                ptx::stay_a_branch();
                Finish::add_c(accumulators, gemm, shared_, c);
                synchronize_consumer(consumer_);  // all threads have read it
            }
        }
        releaser.release(std::move(c));
        if constexpr (Config::config.gates()) {
            if (gemm.has_scale_vectors()) {
                ptx::stay_a_branch();
                Gate::scale(accumulators, arguments_, row, column);
            }
        }
        if (gemm.bias_axis != BiasAxis::none) {
            ptx::stay_a_branch();
            Finish::add_bias(accumulators, gemm.bias_axis, shared_.bias[consumer_]);
        }
        Finish::activate(accumulators, gemm.activation, Gate::is_gated(gemm));
        if constexpr (Config::config.gates()) {
            if (Gate::is_gated(gemm)) {
                ptx::stay_a_branch();
                Gate::multiply(accumulators);
            }
        }
    }

    /// Writes D with the whole epilogue, by TMA or straight from the registers. The loop is not unrolled: one copy of
    /// the epilogue's code.
    __device__ __forceinline__ void write_parts(const Accumulators& accumulators, const SlotsOfC& c, int tile_row,
                                                int row, int column, int batch)
    {
        const unsigned buffer_columns = 128 / size_of(arguments_.gemm.d_type);
        std::byte* buffer = nullptr;
        std::byte* pre_activation_buffer = nullptr;
#pragma unroll 1
        for (unsigned number = 0; number < Part::count; ++number) {
            const Part part(arguments_, number, row, column, batch);
            const unsigned in_buffer = part.tile_column() % buffer_columns;
            typename Part::Values values;
            Part::take(accumulators, number, values, [&](float sum) { return detail::scaled(sum, alpha_); });
            detail::apply_epilogue(
                values, arguments_.gemm, [&](auto& scales) { part.load_scales(scales); },
                [&](auto& addends) {
                    if (c.count() > 0) {
                        part.read_c(shared_, c, tile_row, addends);
                    } else {
                        part.load_c(addends);
                    }
                },
                [&](auto& addends) { part.read_bias(shared_.bias[consumer_], addends); },
                [&](const auto& x) {
                    if (arguments_.gemm.pre_activation.data == nullptr) {
                        return;
                    }
                    if (!stores_pre_activation_by_tma()) {
                        part.store(x, arguments_.gemm.pre_activation);
                        return;
                    }
                    if (in_buffer == 0) {
                        pre_activation_buffer = staging_.next();
                    }
                    part.put(x, pre_activation_buffer, in_buffer);
                });
            if (is_float8(arguments_.gemm.d_type)) {
                part.finish_8_bit(values);
            }
            if (!arguments_.stores_by_tma) {
                part.store(values);
                continue;
            }
            if (in_buffer == 0) {
                buffer = staging_.next();
            }
            part.put(values, buffer, in_buffer);
            if (in_buffer + Part::columns == buffer_columns || part.is_last_of_rows()) {
                const int first_column = part.column() - static_cast<int>(in_buffer);
                constexpr bool has_rest = tile_n % 128 != 0 && tile_n > 32;
                const unsigned first = part.tile_column() - in_buffer;
                const bool is_rest = has_rest && first > 0 && first + buffer_columns > tile_n;
                if (stores_pre_activation_by_tma()) {
                    staging_.store_previous(is_rest ? arguments_.pre_activation_rest : arguments_.pre_activation,
                                            first_column, part.row(), batch);
                }
                staging_.store(is_rest ? arguments_.d_rest : arguments_.d, first_column, part.row(), batch);
            }
        }
    }

    /// Writes any D with any epilogue, or gated pairs that are finished. The loop over the parts is not unrolled: one copy
    /// of the epilogue's code.
    __device__ __forceinline__ void write_general(const Accumulators& accumulators, int row, int column, int batch)
    {
        const Epilogue epilogue(arguments_.gemm, batch);
        std::byte* const buffer = staging_.first();
#pragma unroll 1
        for (unsigned number = 0; number < Part::count; ++number) {
            if constexpr (Config::config.gates()) {
                if (Gate::is_gated(arguments_.gemm) && number % Part::in_block >= Part::in_block / 2) {
                    continue;
                }
            }
            const Part part(arguments_, number, row, column, batch);
            typename Part::Values values;
            Part::take(accumulators, number, values, [](float sum) { return sum; });
            synchronize_consumer(consumer_);  // the previous part has been read
            part.put_f32(values, buffer, 0);
            synchronize_consumer(consumer_);
            const int columns = min(Part::columns, tile_n - static_cast<int>(part.tile_column()));
            for_each_quad(columns, [&](int quad_row, int quad_column) {
                const float4 quad =
                    *reinterpret_cast<const float4*>(buffer + hopper_swizzled(quad_row, quad_column / 4));
                const float four[4] = {quad.x, quad.y, quad.z, quad.w};
                epilogue.store<4>(part.row() + quad_row, part.column() + quad_column, four,
                                  Gate::is_gated(arguments_.gemm));
            });
        }
    }

    /// Calls `visit(row, column)` for each four neighbours of a part of 64 rows. They are distributed over the threads
    /// so that a warp's accesses to D are adjacent.
    template <class Visit>
    __device__ __forceinline__ void for_each_quad(int columns, Visit&& visit) const
    {
        const bool along_rows = arguments_.gemm.d_column_stride == 1;
#pragma unroll 1
        for (int quad = thread(); quad < 64 * Part::columns / 4; quad += 128) {
            const int row = along_rows ? quad / (Part::columns / 4) : quad % 64;
            const int column = along_rows ? quad % (Part::columns / 4) * 4 : quad / 64 * 4;
            if (column < columns) {
                visit(row, column);
            }
        }
    }

    const HopperArguments& arguments_;
    HopperShared<Config>& shared_;
    Staging staging_;
    int consumer_;
    float alpha_;  // times the scales of A and B
};

}  // namespace tessera::kernels
