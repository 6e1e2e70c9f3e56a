#pragma once

/// Gated pairs in the epilogue: where their columns are.
///
/// A tile of B has the gates' columns in its left half and their factors', the ups, in the same order in its right half
/// (hopper_load.cuh), so both values of a pair are registers of one thread.

#include <cstdint>

#include "hopper_config.hpp"
#include "kernels/gemm/gemm_arguments.hpp"

namespace tessera::kernels {

/// Returns true if D is of gated pairs.
template <class Config>
__device__ __forceinline__ bool is_gated(const GemmArguments& gemm)
{
    return Config::config.gates() && gemm.gating != Gating::none;
}

/// A tile's first column in D. @param column  in A * B
template <class Config>
__device__ __forceinline__ int column_of_d(const GemmArguments& gemm, int column)
{
    return is_gated<Config>(gemm) ? column / 2 : column;
}

/// Which columns of A * B a tile has.
template <class Config>
class HopperColumns {
    static constexpr int tile_n = Config::config.tile_n;

public:
    /// @param first  the tile's first column in D
    __device__ HopperColumns(const GemmArguments& gemm, int first)
        : gated_(is_gated<Config>(gemm)),
          first_(first),
          end_(static_cast<int>(gemm.d_columns())),
          stride_(gated_ && gemm.gating == Gating::interleaved ? 2 : 1),
          first_up_(gated_ ? static_cast<int>(gemm.column_of_pair(0, true)) : 0)
    {}

    /// Returns the column that is `in_tile`-th in the tile, or -1 if that is beyond D.
    __device__ int operator[](int in_tile) const
    {
        const bool up = gated_ && in_tile >= tile_n / 2;
        const int in_d = first_ + in_tile - (up ? tile_n / 2 : 0);
        return in_d < end_ ? in_d * stride_ + (up ? first_up_ : 0) : -1;
    }

private:
    bool gated_;
    int first_;
    int end_;
    int stride_;
    int first_up_;
};

}  // namespace tessera::kernels
