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

/// Every function is executed by the 128 threads of a consumer. `Pairs` is true if D may be of gated pairs: the left half of
/// the accumulators, then.
template <class Config, bool Pairs>
class HopperTileStore {
    static constexpr int tile_n = Config::config.tile_n;
    static constexpr int blocks = Config::config.consumer_m() / 64;
    static constexpr int registers = tile_n / 2;
    using Accumulators = float[blocks][registers];

public:
    __device__ HopperTileStore(const HopperArguments& arguments, HopperStaging<Config>& staging)
        : arguments_(arguments), staging_(staging)
    {}

    /// Stores `function(value, register of the block)` of each value to D by TMA.
    template <class Function>
    __device__ __forceinline__ void store(const Accumulators& values, Function&& function, int row, int column,
                                          int batch)
    {
        if (arguments_.gemm.d_type == ElementType::f32) {
            store_f32(values, function, row, column, batch);
        } else {
            store_16_bit(values, function, row, column, batch);
        }
    }

    /// Stores a 16-bit D, 64 columns (or the tile's width) at a time.
    template <class Function>
    __device__ __forceinline__ void store_16_bit(const Accumulators& values, Function&& function, int row, int column,
                                                 int batch)
    {
        constexpr int width = HopperConfig::store_width(tile_n, 2);
        const bool as_f16 = arguments_.gemm.d_type == ElementType::f16;
        const HopperPlace place;
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
            for_each_part<width>([&]<int First, int Columns>() {
                std::byte* const buffer = staging_.next();
#pragma unroll
                for (int q = 0; q < Columns / 16; ++q) {
                    const float* const d = &values[block][(First + q * 16) / 2];
                    std::uint32_t packed[4];
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        packed[i] = detail::pack(function(d[2 * i], First / 2 + q * 8 + 2 * i),
                                                 function(d[2 * i + 1], First / 2 + q * 8 + 2 * i + 1), as_f16);
                    }
                    store_matrices(buffer + place.matrix(q), packed);
                }
                if constexpr (Columns % 16 != 0) {
                    constexpr int first = (First + Columns - 8) / 2;
                    const float* const d = &values[block][first];
                    const std::uint32_t packed[2] = {
                        detail::pack(function(d[0], first), function(d[1], first + 1), as_f16),
                        detail::pack(function(d[2], first + 2), function(d[3], first + 3), as_f16)};
                    store_matrices(buffer + place.matrix(Columns / 16), packed);
                }
                staging_.store(Columns == width ? arguments_.d : arguments_.d_rest, column + First, row + block * 64,
                               batch);
            });
        }
    }

private:
    /// Calls `visit<first, columns>()` for each part of the tile's width that one store writes: `Width` columns each,
    /// then the rest. Of pairs, the left half.
    template <int Width, class Visit>
    __device__ __forceinline__ void for_each_part(Visit&& visit) const
    {
        const auto visit_part = [&]<int First, int Columns>() {
            if (First >= tile_n / 2 && has_pairs()) {
                return;
            }
            visit.template operator()<First, Columns>();
        };
        [&]<int... Part>(std::integer_sequence<int, Part...>) {
            (visit_part.template operator()<Part * Width, Width>(), ...);
        }(std::make_integer_sequence<int, tile_n / Width>());
        if constexpr (tile_n % Width != 0) {
            visit_part.template operator()<tile_n / Width * Width, tile_n % Width>();
        }
    }

    /// Stores an fp32 D, 32 columns (or the tile's width) at a time.
    template <class Function>
    __device__ __forceinline__ void store_f32(const Accumulators& values, Function&& function, int row, int column,
                                              int batch)
    {
        constexpr int width = HopperConfig::store_width(tile_n, 4);
        const HopperPlace place;
#pragma unroll
        for (int block = 0; block < blocks; ++block) {
            for_each_part<width>([&]<int First, int Columns>() {
                std::byte* const buffer = staging_.next();
                place.template for_each_pair<Columns>(0, [&](int value, unsigned offset) {
                    const float* const d = &values[block][First / 2 + value];
                    *reinterpret_cast<float2*>(buffer + offset) =
                        make_float2(function(d[0], First / 2 + value), function(d[1], First / 2 + value + 1));
                });
                staging_.store(Columns == width ? arguments_.d : arguments_.d_rest, column + First, row + block * 64,
                               batch);
            });
        }
    }

    __device__ bool has_pairs() const { return Pairs && arguments_.gemm.gating != Gating::none; }

    const HopperArguments& arguments_;
    HopperStaging<Config>& staging_;
};

}  // namespace tessera::kernels
