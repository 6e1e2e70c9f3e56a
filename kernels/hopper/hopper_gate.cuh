#pragma once

/// Gated pairs in the epilogue of a consumer.
///
/// A tile of B has the gates' columns in its left half and their factors', the ups, in the same order in its right half
/// (hopper_load.cuh), so both values of a pair are registers of one thread. Finished pairs take the place of the gates.

#include <cstdint>
#include <utility>

#include "hopper_arguments.hpp"
#include "hopper_part.cuh"
#include "kernels/gemm/epilogue_operations.cuh"
#include "kernels/gemm/ptx.cuh"

namespace tessera::kernels {

template <class Config>
class HopperGate {
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int blocks = Config::config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    using Accumulators = float[blocks][registers];
    using Part = HopperPart<Config>;

public:
    __device__ static bool is_gated(const GemmArguments& gemm)
    {
        return Config::config.gates() && gemm.gating != Gating::none;
    }

    /// Loads a thread's elements of a bias per column, in the order of the tile: the gates', then the ups'.
    /// @param column  the tile's first column, if pairs are two columns
    template <int Count>
    __device__ __forceinline__ static void load_bias(const GemmArguments& gemm, int column, int thread,
                                                     float (&values)[Count])
    {
#pragma unroll
        for (int i = 0; i < Count; ++i) {
            const int in_tile = thread + i * 128;
            const bool up = in_tile >= tile_n / 2;
            const int pair = column / 2 + in_tile - (up ? tile_n / 2 : 0);
            if (in_tile < tile_n && pair < gemm.n / 2) {
                values[i] = detail::load_element(gemm.bias, gemm.column_of_pair(pair, up), gemm.bias_type);
            }
        }
    }

    /// x -> x * row scale * column scale, in a loop over parts with one copy of the loads.
    /// @param row, column  of the first element in D
    __device__ __forceinline__ static void scale(Accumulators& accumulators, const HopperArguments& arguments, int row,
                                                 int column)
    {
#pragma unroll 1
        for (unsigned number = 0; number < Part::count; ++number) {
            typename Part::Values scales;
            load_scales(arguments.gemm, number, row, column, scales);
            multiply_part(accumulators, number, scales, std::make_integer_sequence<unsigned, Part::count>());
        }
    }

    /// (act(gate), up) -> act(gate) * up.
    __device__ __forceinline__ static void multiply(Accumulators& accumulators)
    {
#pragma unroll
        for (auto& block : accumulators) {
#pragma unroll
            for (int i = 0; i < registers / 2; ++i) {
                block[i] = __fmul_rn(block[i], block[registers / 2 + i]);
            }
        }
    }

private:
    /// Loads the products of row and column scales of part `number`.
    __device__ __forceinline__ static void load_scales(const GemmArguments& gemm, unsigned number, int row, int column,
                                                       typename Part::Values& scales)
    {
        const HopperPlace place;
        const unsigned in_block = number % Part::in_block;
        const bool up = in_block >= Part::in_block / 2;
        const int first_row = row + static_cast<int>(number / Part::in_block) * 64 + place.row();
        float of_row[2] = {1.0F, 1.0F};
        if (gemm.row_scales != nullptr) {
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                of_row[i] = first_row + i * 8 < gemm.m ? gemm.row_scales[first_row + i * 8] : 0.0F;
            }
        }
        const int first_pair =
            column + static_cast<int>(in_block % (Part::in_block / 2)) * Part::columns + place.column();
        const auto pairs = static_cast<int>(gemm.n / 2);
        const int stride = gemm.gating == Gating::interleaved ? 2 : 1;
        float of_column[Part::columns / 4];
#pragma unroll
        for (int j = 0; j < Part::columns / 4; ++j) {
            of_column[j] = 1.0F;
        }
        if (gemm.column_scales != nullptr) {
            const float* const from = gemm.column_scales + gemm.column_of_pair(first_pair, up);
#pragma unroll
            for (int j = 0; j < Part::columns / 4; ++j) {
                const int pair = j / 2 * 8 + j % 2;
                of_column[j] = first_pair + pair < pairs ? from[pair * stride] : 0.0F;
            }
        }
#pragma unroll
        for (int value = 0; value < Part::values; ++value) {
            scales[value] = __fmul_rn(of_row[value / 2 % 2], of_column[value / 4 * 2 + value % 2]);
        }
    }

    /// Multiplies part `number` of the accumulators. No run-time index, because they are registers.
    template <unsigned... Number>
    __device__ __forceinline__ static void multiply_part(Accumulators& accumulators, unsigned number,
                                                         const typename Part::Values& factors,
                                                         std::integer_sequence<unsigned, Number...> /*parts*/)
    {
        const auto multiplies = [&]<unsigned Index>() {
            if (number != Index) {
                return false;
            }
            ptx::stay_a_branch();
#pragma unroll
            for (unsigned r = 0; r < Part::values; ++r) {
                float& value = accumulators[Index / Part::in_block][Index % Part::in_block * Part::values + r];
                value = __fmul_rn(value, factors[r]);
            }
            return true;
        };
        static_cast<void>((multiplies.template operator()<Number>() || ...));
    }
};

}  // namespace tessera::kernels
