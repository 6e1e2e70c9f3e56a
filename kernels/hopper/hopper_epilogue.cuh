#pragma once

/// The epilogue of a consumer: finishes its accumulators and writes them to D.
///
/// The path is chosen at run time.
///
/// - The frequent epilogues (`HopperFinishing`), if TMA can address D: code of their own from the registers through
///   swizzled shared memory to the TMA store, while the next part is being converted (hopper_store.cuh). Bias from shared
///   memory, C from the slots of the ring after the tile's stages. Straight-line code, but a loop over 64 columns for GELU
///   and SiLU.
/// - Any other epilogue: the same way, but in a loop over parts (hopper_part.cuh) with one copy of all operations. Gated
///   pairs and a narrow tile of a column-major D go this way, too, if need be without TMA.
/// - Otherwise: through shared memory in fp32, to a loop that finishes and stores row by row (kernels/gemm).

#include <cstdint>
#include <utility>

#include "hopper_arguments.hpp"
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

    using Part = HopperPart<Config, Config::config.epilogue_columns()>;
    using StoredPart = HopperPart<Config, Config::config.stored_columns()>;

public:
    /// A thread's elements of the bias, on their way to shared memory.
    struct Bias {
        static constexpr int elements = Config::config.bias_elements();
        static constexpr int per_thread = (elements + 127) / 128;
        float values[per_thread];
    };

    /// Where a consumer's rows of a tile are.
    struct Tile {
        int first_row;  // the first of them in the tile
        int row;        // of the consumer's first accumulator in D
        int column;     // the same; in A * B, if D is of gated pairs
        int batch;
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
            const HopperColumns<Config> columns(gemm, column_of_d(column));
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
                                          const Tile& tile)
    {
        if (arguments_.finishing == HopperFinishing::plain) {
            tile_store(tile).store(accumulators, [&](float sum) { return detail::scaled(sum, alpha_); });
        } else if (Config::config.streams(ElementBytes) && arguments_.finishing != HopperFinishing::other) {
            ptx::stay_a_branch();
            stream(accumulators, std::move(c), releaser, tile);
            return;
        } else if (writes_parts()) {
            ptx::stay_a_branch();
            write_parts(accumulators, c, tile);
        } else {
            write_general(accumulators, tile);
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
    /// Finishes and stores a tile whose epilogue has code of its own. Frees the slots of C.
    __device__ __forceinline__ void stream(Accumulators& accumulators, SlotsOfC c, const HopperReleaser& releaser,
                                           const Tile& tile)
    {
        if constexpr (Config::config.carries_c()) {
            if (arguments_.finishing == HopperFinishing::residual) {
                ptx::stay_a_branch();
                add_c(accumulators, c, tile);
                // Early: until then, the ring has fewer slots for the next tile.
                synchronize_consumer(consumer_);  // all threads have read it
                releaser.release(std::move(c));
                tile_store(tile).store_16_bit(accumulators, []<int Count>(float(&)[Count], int, int) {});
                return;
            }
        }
        releaser.release(std::move(c));
        const float* const elements = shared_.bias[consumer_] + HopperPlace().column();
        const auto finish_each = [&](auto&& function) {
            return [&]<int Count>(float(&values)[Count], int /*block*/, int first) {
#pragma unroll
                for (int i = 0; i < Count; ++i) {
                    const float2 pair = *reinterpret_cast<const float2*>(elements + (first + i) / 4 * 8);
                    values[i] = function(__fadd_rn(detail::scaled(values[i], alpha_), i % 2 == 0 ? pair.x : pair.y));
                }
            };
        };
        if (arguments_.finishing == HopperFinishing::bias) {
            const float floor = arguments_.gemm.activation == ActivationKind::relu ? 0.0F : -__int_as_float(0x7F800000);
            const auto function = [&](float x) { return x < floor ? 0.0F : x; };  // keeps NaN
            tile_store(tile).store_16_bit(accumulators, finish_each(function));
        } else if (arguments_.finishing == HopperFinishing::bias_gelu_tanh) {
            ptx::stay_a_branch();
            const auto function = [](float x) { return detail::gelu_tanh(x); };
            tile_store(tile).store_16_bit(accumulators, finish_each(function));
        } else if constexpr (Config::config.accumulators() <= 128) {
            ptx::stay_a_branch();
            if constexpr (Config::config.gates()) {
                if (arguments_.finishing == HopperFinishing::gated_silu) {
                    ptx::stay_a_branch();
                    stream_pairs(accumulators, tile);
                    return;
                }
            }
            stream_in_parts(accumulators, tile);
        }
    }

    /// The same with gelu or silu, which are too long for a copy for each accumulator.
    __device__ __forceinline__ void stream_in_parts(Accumulators& accumulators, const Tile& tile)
    {
        constexpr int at_once = StoredPart::values < 16 ? StoredPart::values : 16;
        StoredPart::for_each(
            accumulators, arguments_.gemm, [&](typename StoredPart::Values& values, unsigned block, unsigned index) {
                const float* const elements =
                    shared_.bias[consumer_] + index * StoredPart::columns + HopperPlace().column();
#pragma unroll
                for (int i = 0; i < StoredPart::values; ++i) {
                    const float2 pair = *reinterpret_cast<const float2*>(elements + i / 4 * 8);
                    values[i] = __fadd_rn(detail::scaled(values[i], alpha_), i % 2 == 0 ? pair.x : pair.y);
                }
                if (arguments_.finishing == HopperFinishing::bias_gelu) {
                    ptx::stay_a_branch();
                    detail::for_each_in_groups<at_once>(values, [](float x) { return detail::gelu(x); });
                } else {
                    ptx::stay_a_branch();
                    detail::for_each_in_groups<at_once>(values, [](float x) { return detail::silu(x); });
                }
                const StoredPart part(arguments_, block, index, tile.row, tile.column, tile.batch);
                store_16_bit(part, HopperConfig::store_width(tile_n, 2), values, true, tile.batch);
            });
    }

    /// The same with silu of the gates times the ups, in parts with as many pairs as a store has columns.
    __device__ __forceinline__ void stream_pairs(Accumulators& accumulators, const Tile& tile)
    {
        constexpr int columns = tile_n < 128 ? tile_n : 128;
        using Pairs = HopperPart<Config, columns>;
        using Products = HopperPart<Config, columns / 2>;
        Pairs::for_each(accumulators, arguments_.gemm,
                        [&](typename Pairs::Values& values, unsigned block, unsigned index) {
                            const Pairs pairs(arguments_, block, index, tile.row, column_of_d(tile.column), tile.batch);
                            pairs.read_bias_of_columns(shared_.bias[consumer_], [&](const auto& bias, int first) {
#pragma unroll
                                for (int i = 0; i < 8; ++i) {
                                    values[first + i] = __fadd_rn(detail::scaled(values[first + i], alpha_), bias[i]);
                                }
                            });
                            typename Products::Values products;
#pragma unroll
                            for (int i = 0; i < Products::values; ++i) {
                                products[i] = values[i];
                            }
                            detail::for_each_in_groups<16>(products, [](float x) { return detail::silu(x); });
#pragma unroll
                            for (int i = 0; i < Products::values; ++i) {
                                products[i] = __fmul_rn(products[i], values[Products::values + i]);
                            }
                            const Products out(arguments_, block, index, tile.row, tile.column, tile.batch);
                            const auto packed = out.pack_16_bit(products);
                            out.put(packed, staging_.next());
                            staging_.store(arguments_.d, pairs.column(), pairs.row(), tile.batch);
                        });
    }

    /// sum -> alpha * sum + beta * C, of 16 bits.
    __device__ __forceinline__ void add_c(Accumulators& accumulators, const SlotsOfC& c, const Tile& tile) const
    {
        const bool from_f16 = arguments_.gemm.c_type == ElementType::f16;
        const float beta = arguments_.gemm.beta;
        const unsigned first_block = static_cast<unsigned>(tile.first_row) / 64;
        const HopperPlace place;
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
#pragma unroll
            for (int column = 0; column < tile_n; column += 16) {
                const std::byte* const box = box_of_c<Config, 2>(shared_, c, first_block + block, column / 64);
                const auto add = [&]<int Count>(std::uint32_t(&packed)[Count]) {
                    load_matrices(box + place.matrix(column % 64 / 16), packed);
#pragma unroll
                    for (int i = 0; i < Count; ++i) {
                        float* const pair = &accumulators[block][column / 2 + 2 * i];
                        float of_c[2];
                        detail::unpack(packed[i], from_f16, of_c[0], of_c[1]);
                        pair[0] = __fmaf_rn(beta, of_c[0], detail::scaled(pair[0], alpha_));
                        pair[1] = __fmaf_rn(beta, of_c[1], detail::scaled(pair[1], alpha_));
                    }
                };
                if (column + 8 < tile_n) {
                    std::uint32_t sixteen_columns[4];
                    add(sixteen_columns);
                } else {
                    std::uint32_t eight_columns[2];
                    add(eight_columns);
                }
            }
        }
    }

    // Special registers are read at each use: that is cheaper than keeping them beside the accumulators.
    __device__ static int thread() { return static_cast<int>(threadIdx.x) % 128; }

    __device__ bool writes_columns() const { return tile_n <= 64 && arguments_.gemm.d_row_stride == 1; }
    __device__ bool writes_parts() const
    {
        return arguments_.stores_by_tma || writes_columns() || is_gated<Config>(arguments_.gemm);
    }
    /// The tile's first column in D. @param column  in A * B
    __device__ int column_of_d(int column) const { return is_gated<Config>(arguments_.gemm) ? column / 2 : column; }
    __device__ HopperTileStore<Config> tile_store(const Tile& tile)
    {
        return {arguments_, staging_, tile.row, tile.column, tile.batch};
    }

    /// Writes D with any epilogue, by TMA or straight from the registers.
    __device__ __forceinline__ void write_parts(Accumulators& accumulators, const SlotsOfC& c, const Tile& tile)
    {
        const GemmArguments& gemm = arguments_.gemm;
        Part::for_each(accumulators, gemm, [&](typename Part::Values& values, unsigned block, unsigned index) {
            const Part part(arguments_, block, index, tile.row, column_of_d(tile.column), tile.batch);
#pragma unroll
            for (float& value : values) {
                value = detail::scaled(value, alpha_);
            }
            detail::prepare_activation(
                values, gemm, [&](auto&& use) { part.load_scales(use); },
                [&](auto&& use) {
                    if (c.count() > 0) {
                        part.read_c(shared_, c, tile.first_row, use);
                    } else {
                        part.load_c(use);
                    }
                },
                [&](auto&& use) { part.read_bias(shared_.bias[consumer_], use); });
            // One copy of the stores: first of the pre-activation, if there is one, then of D.
#pragma unroll 1
            for (bool to_d = gemm.pre_activation.data == nullptr;; to_d = true) {
                if (to_d) {
                    finish(part, values);
                }
                store(part, values, to_d, tile.batch);
                if (to_d) {
                    break;
                }
            }
        });
    }

    /// Replaces what the activation is applied to by elements of D, not rounded yet. Those of gated pairs are in the left
    /// half of the part.
    __device__ __forceinline__ void finish(const Part& part, typename Part::Values& values) const
    {
        const GemmArguments& gemm = arguments_.gemm;
        constexpr int pairs = Part::values / 2;
        const bool gated = is_gated<Config>(gemm);
        detail::activate(values, gemm.activation, gated ? pairs : Part::values);
        if (gated) {
            ptx::stay_a_branch();
#pragma unroll
            for (int i = 0; i < pairs; ++i) {
                values[i] = __fmul_rn(values[i], values[pairs + i]);
            }
        }
        if (is_float8(gemm.d_type)) {
            part.finish_8_bit(values);
        }
    }

    /// Stores a part to D, or to the pre-activation.
    __device__ __forceinline__ void store(const Part& part, typename Part::Values& values, bool to_d, int batch)
    {
        const GemmArguments& gemm = arguments_.gemm;
        if (!(to_d ? arguments_.stores_by_tma : arguments_.stores_pre_activation_by_tma)) {
            const Destination& x = gemm.pre_activation;
            part.store(values, {.data = to_d ? gemm.d : x.data,
                                .row_stride = to_d ? gemm.d_row_stride : x.row_stride,
                                .column_stride = to_d ? gemm.d_column_stride : x.column_stride,
                                .batch_stride = to_d ? gemm.d_batch_stride : x.batch_stride,
                                .type = to_d ? gemm.d_type : x.type});
            return;
        }
        // The pre-activation that TMA stores has D's type.
        if (is_float8(gemm.d_type)) {
            ptx::stay_a_branch();
            store_columns<0>(part, part_width<1>(), to_d, batch,
                             [&](std::byte* buffer) { part.put_8_bit(values, buffer); });
            return;
        }
        if (gemm.d_type != ElementType::f32) {
            store_16_bit(part, part_width<2>(), values, to_d, batch);
            return;
        }
        constexpr int width = Config::config.part_width(4, false);
        store_columns<0>(part, part_width<4>(), to_d, batch,
                         [&](std::byte* buffer) { part.template put_f32<0, width>(values, buffer); });
        if constexpr (width < Part::columns) {
            if (!is_gated<Config>(gemm) && static_cast<int>(part.tile_column()) + width < tile_n) {
                store_columns<width>(part, width, to_d, batch,
                                     [&](std::byte* buffer) { part.template put_f32<width, width>(values, buffer); });
            }
        }
    }

    /// Columns of D that one store of a part writes.
    template <int ElementBytes>
    __device__ int part_width() const
    {
        return is_gated<Config>(arguments_.gemm) ? Config::config.part_width(ElementBytes, true)
                                                 : Config::config.part_width(ElementBytes, false);
    }

    /// Stores a part to a D of 16 bits by TMA, or to such a pre-activation.
    template <class AnyPart>
    __device__ __forceinline__ void store_16_bit(const AnyPart& part, int width, const typename AnyPart::Values& values,
                                                 bool to_d, int batch)
    {
        const auto packed = part.pack_16_bit(values);
        store_columns<0>(part, width, to_d, batch, [&](std::byte* buffer) { part.put(packed, buffer); });
    }

    /// Puts columns of a part from `First` into a buffer, and stores `width` of them.
    /// @param put  called with the buffer
    template <int First, class AnyPart, class Put>
    __device__ __forceinline__ void store_columns(const AnyPart& part, int width, bool to_d, int batch, Put&& put)
    {
        put(staging_.next());
        const bool is_rest = static_cast<int>(part.tile_column()) + First + width > tile_n;  // never of gated pairs
        const AnyTensorMap<3>& map = to_d ? (is_rest ? arguments_.d_rest : arguments_.d)
                                          : (is_rest ? arguments_.pre_activation_rest : arguments_.pre_activation);
        staging_.store(map, part.column() + First, part.row(), batch);
    }

    /// Writes any D with any epilogue.
    __device__ __forceinline__ void write_general(Accumulators& accumulators, const Tile& tile)
    {
        const Epilogue epilogue(arguments_.gemm, tile.batch);
        constexpr int at_once = Part::columns < 32 ? Part::columns : 32;  // of fp32 in a buffer
        std::byte* const buffer = staging_.first();
        Part::for_each(
            accumulators, arguments_.gemm, [&](typename Part::Values& values, unsigned block, unsigned index) {
                const Part part(arguments_, block, index, tile.row, tile.column, tile.batch);
#pragma unroll 1
                for (int first = 0; first < Part::columns; first += at_once) {
                    synchronize_consumer(consumer_);  // the previous columns have been read
                    part.template put_f32<0, at_once>(values, buffer);
                    synchronize_consumer(consumer_);
                    const int in_tile = static_cast<int>(part.tile_column()) + first;
                    for_each_quad<at_once>(min(at_once, tile_n - in_tile), [&](int quad_row, int quad_column) {
                        const float4 quad =
                            *reinterpret_cast<const float4*>(buffer + hopper_swizzled(quad_row, quad_column / 4));
                        const float four[4] = {quad.x, quad.y, quad.z, quad.w};
                        epilogue.store<4>(part.row() + quad_row, part.column() + first + quad_column, four);
                    });
#pragma unroll
                    for (int i = at_once / 2; i < Part::values; ++i) {
                        values[i - at_once / 2] = values[i];
                    }
                }
            });
    }

    /// Calls `visit(row, column)` for each four neighbours of a part of 64 rows. They are distributed over the threads
    /// so that a warp's accesses to D are adjacent.
    /// @param columns  that belong to the tile, of `Columns`
    template <int Columns, class Visit>
    __device__ __forceinline__ void for_each_quad(int columns, Visit&& visit) const
    {
        const bool along_rows = arguments_.gemm.d_column_stride == 1;
#pragma unroll 1
        for (int quad = thread(); quad < 64 * Columns / 4; quad += 128) {
            const int row = along_rows ? quad / (Columns / 4) : quad % 64;
            const int column = along_rows ? quad % (Columns / 4) * 4 : quad / 64 * 4;
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
