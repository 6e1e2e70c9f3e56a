#pragma once

/// Stores the whole tile of a consumer to D by TMA: registers, swizzled shared memory, TMA store, while the next part is
/// being converted.

#include <cstdint>
#include <utility>

#include "hopper_arguments.hpp"
#include "hopper_part.cuh"
#include "hopper_staging.cuh"
#include "kernels/gemm/epilogue_operations.cuh"
#include "tessera/device/warp.cuh"

namespace tessera::kernels {

/// Every function is executed by the 128 threads of a consumer.
template <class Config>
class HopperTileStore {
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int blocks = Config::config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    using Accumulators = float[blocks][registers];

public:
    __device__ HopperTileStore(const HopperArguments& arguments, HopperStaging<Config>& staging, int row, int column,
                               int batch)
        : arguments_(arguments), staging_(staging), row_(row), column_(column), batch_(batch)
    {}

    /// Stores `function(value)` of each accumulator to D by TMA.
    template <class Function>
    __device__ __forceinline__ void store(const Accumulators& values, Function&& function)
    {
        if (arguments_.gemm.d_type == ElementType::f32) {
            store_f32(values, function);
            return;
        }
        store_16_bit(values, [&]<int Count>(float(&group)[Count], int, int) {
#pragma unroll
            for (float& value : group) {
                value = function(value);
            }
        });
    }

    /// Stores the accumulators to a D of 16 bits, 64 columns (or the tile's width) at a time.
    /// @param finish  called with 8 or 4 values of the thread, in 16 or 8 columns, to replace them by elements of D; with
    ///                the block of 64 rows, and with the index of the first value in it
    template <class Finish>
    __device__ __forceinline__ void store_16_bit(const Accumulators& values, Finish&& finish)
    {
        const bool as_f16 = arguments_.gemm.d_type == ElementType::f16;
        const HopperPlace place;
        for_each_part<HopperConfig::store_width(tile_n, 2)>([&]<int First, int Columns>(int block) {
            constexpr int whole = Columns / 16;  // matrices of 16 columns
            // All of them before the wait for the buffer, which hides the latencies.
            std::uint32_t packed[whole + 1][4];
            const auto pack = [&]<int Count>(int matrix) {
                const int first = First / 2 + matrix * 8;
                float group[Count];
#pragma unroll
                for (int i = 0; i < Count; ++i) {
                    group[i] = values[block][first + i];
                }
                finish(group, block, first);
#pragma unroll
                for (int i = 0; i < Count / 2; ++i) {
                    packed[matrix][i] = detail::pack(group[2 * i], group[2 * i + 1], as_f16);
                }
            };
#pragma unroll
            for (int matrix = 0; matrix < whole; ++matrix) {
                pack.template operator()<8>(matrix);
            }
            if constexpr (Columns % 16 != 0) {
                pack.template operator()<4>(whole);
            }
            std::byte* const buffer = staging_.next();
#pragma unroll
            for (int matrix = 0; matrix < whole; ++matrix) {
                store_matrices(buffer + place.matrix(matrix), packed[matrix]);
            }
            if constexpr (Columns % 16 != 0) {
                const std::uint32_t half[2] = {packed[whole][0], packed[whole][1]};
                store_matrices(buffer + place.matrix(whole), half);
            }
        });
    }

private:
    /// Stores the accumulators to an fp32 D, 32 columns (or the tile's width) at a time.
    template <class Function>
    __device__ __forceinline__ void store_f32(const Accumulators& values, Function&& function)
    {
        const HopperPlace place;
        for_each_part<HopperConfig::store_width(tile_n, 4)>([&]<int First, int Columns>(int block) {
            std::byte* const buffer = staging_.next();
            place.template for_each_pair<Columns>(0, [&](int value, unsigned offset) {
                const float* const d = &values[block][First / 2 + value];
                *reinterpret_cast<float2*>(buffer + offset) = make_float2(function(d[0]), function(d[1]));
            });
        });
    }

    /// Calls `fill<first, columns>(block)`, which fills the next buffer, for each part of the tile that one store writes,
    /// and stores it: of each block of 64 rows `Width` columns each, then the rest.
    template <int Width, class Fill>
    __device__ __forceinline__ void for_each_part(Fill&& fill)
    {
        const auto store_part = [&]<int First, int Columns>(int block) {
            fill.template operator()<First, Columns>(block);
            staging_.store(Columns == Width ? arguments_.d : arguments_.d_rest, column_ + First, row_ + block * 64,
                           batch_);
        };
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
            [&]<int... Part>(std::integer_sequence<int, Part...>) {
                (store_part.template operator()<Part * Width, Width>(block), ...);
            }(std::make_integer_sequence<int, tile_n / Width>());
            if constexpr (tile_n % Width != 0) {
                store_part.template operator()<tile_n / Width * Width, tile_n % Width>(block);
            }
        }
    }

    const HopperArguments& arguments_;
    HopperStaging<Config>& staging_;
    int row_;  // of the consumer's first accumulator in D
    int column_;
    int batch_;
};

}  // namespace tessera::kernels
