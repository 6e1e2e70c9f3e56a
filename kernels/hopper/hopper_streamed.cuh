#pragma once

/// The frequent epilogues (`HopperFinishing`), for a D of 16 bits that TMA can address: code of their own, from the registers
/// to the TMA store. Bias from shared memory, C from the slots of the ring after the tile's stages. Straight-line code, but
/// a loop over 64 columns of D for GELU, SiLU and SwiGLU.

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

/// Every function is executed by the consumer's 128 threads.
template <class Config>
class HopperStreamed {
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int blocks = Config::config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    using Accumulators = float[blocks][registers];
    using SlotsOfC = ReadSlots<HopperRing<Config>>;
    using StoredPart = HopperPart<Config, Config::config.stored_columns()>;

public:
    /// @param alpha  times the scales of A and B
    __device__ HopperStreamed(const HopperArguments& arguments, HopperShared<Config>& shared,
                              HopperStaging<Config>& staging, int consumer, float alpha)
        : arguments_(arguments), shared_(shared), staging_(staging), consumer_(consumer), alpha_(alpha)
    {}

    /// Finishes and stores a tile whose epilogue has code of its own. Frees the slots of C.
    __device__ __forceinline__ void write(Accumulators& accumulators, SlotsOfC c, const HopperReleaser& releaser,
                                          const HopperTile& tile)
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
            const auto function = [](float x) { return activations::gelu_tanh(x); };
            tile_store(tile).store_16_bit(accumulators, finish_each(function));
        } else if constexpr (Config::config.accumulators() <= 128) {
            ptx::stay_a_branch();
            if constexpr (Config::config.gates()) {
                if (arguments_.finishing == HopperFinishing::gated_silu) {
                    ptx::stay_a_branch();
                    write_pairs(accumulators, tile);
                    return;
                }
            }
            write_in_parts(accumulators, tile);
        }
    }

private:
    /// The same with gelu or silu. A copy for each accumulator would add 0.76 MB, and gelu would not be faster.
    __device__ __forceinline__ void write_in_parts(Accumulators& accumulators, const HopperTile& tile)
    {
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
                    detail::for_each(values, [](float x) { return activations::gelu(x); });
                } else {
                    ptx::stay_a_branch();
                    detail::for_each(values, [](float x) { return activations::silu(x); });
                }
                const StoredPart part(arguments_, block, index, tile.row, tile.column, tile.batch);
                part.store_16_bit(staging_, HopperConfig::store_width(tile_n, 2), values, true);
            });
    }

    /// The same with silu of the gates times the ups, in parts with as many pairs as a store has columns.
    __device__ __forceinline__ void write_pairs(Accumulators& accumulators, const HopperTile& tile)
    {
        constexpr int columns = tile_n < 128 ? tile_n : 128;
        using Pairs = HopperPart<Config, columns>;
        using Products = HopperPart<Config, columns / 2>;
        Pairs::for_each(accumulators, arguments_.gemm,
                        [&](typename Pairs::Values& values, unsigned block, unsigned index) {
                            const Pairs pairs(arguments_, block, index, tile.row,
                                              column_of_d<Config>(arguments_.gemm, tile.column), tile.batch);
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
                            detail::for_each(products, [](float x) { return activations::silu(x); });
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
    __device__ __forceinline__ void add_c(Accumulators& accumulators, const SlotsOfC& c, const HopperTile& tile) const
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

    __device__ HopperTileStore<Config> tile_store(const HopperTile& tile)
    {
        return {arguments_, staging_, tile.row, tile.column, tile.batch};
    }

    const HopperArguments& arguments_;
    HopperShared<Config>& shared_;
    HopperStaging<Config>& staging_;
    int consumer_;
    float alpha_;
};

}  // namespace tessera::kernels
