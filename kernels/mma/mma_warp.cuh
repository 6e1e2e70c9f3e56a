#pragma once

/// A warp's part of a tile: it reads fragments from a stage in shared memory and multiplies them.

#include <cstdint>
#include <type_traits>

#include "../gemm/gemm_arguments.hpp"
#include "mma_arguments.hpp"
#include "mma_config.hpp"
#include "mma_tile.cuh"

namespace tessera::kernels {

/// Elements of K in one instruction.
template <class Element>
inline constexpr unsigned mma_k =
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    16 / sizeof(Element);
#else
    32 / sizeof(Element);
#endif

/// A warp's products: the fragments of one step along K are read while those of the step before are multiplied.
template <class Config, class A, class B, Major MajorA, Major MajorB>
class MmaWarp {
    static constexpr MmaConfig config = Config::config;

public:
    static constexpr int rows = config.warp_m() / 16;    // fragments along M
    static constexpr int columns = config.warp_n() / 8;  // along N
    using ElementA = A;
    using ElementB = B;
    using TileA = MmaTile<A, config.tile_m, MajorA>;
    using TileB = MmaTile<B, config.tile_n, MajorB>;
    using PartA = FragmentA<A, 16, mma_k<A>>;
    using PartB = FragmentB<B, 8, mma_k<B>>;
    using ReaderA = MmaReader<TileA, PartA, config.warp_m(), true>;
    using ReaderB = MmaReader<TileB, PartB, config.warp_n(), false>;
    using Accumulators = FragmentC<float, 16, 8>[rows][columns];
    static constexpr int steps = ReaderA::steps;  // of a stage
    static_assert(steps == ReaderB::steps && steps % 2 == 0);
    /// True if the sum of a stage is kept apart: always where it is in f16, else if MmaArguments::two_level says so.
    static constexpr bool has_stage_sums = sizeof(A) == 1 || config.f16_sums;
    static_assert(!config.f16_sums || (std::is_same_v<A, f16> && std::is_same_v<B, f16>));
    using StageSums = FragmentC<std::conditional_t<config.f16_sums, f16, float>, 16, 8>[rows][columns];

    __device__ MmaWarp(int warp_m, int warp_n) : a_(warp_m * config.warp_m()), b_(warp_n * config.warp_n()) {}

    /// Reads the fragments of `step` from a stage.
    __device__ __forceinline__ void read(std::uint32_t stage, int step)
    {
#pragma unroll
        for (int i = 0; i < rows; ++i) {
            a_.read(a_words_[step % 2][i], stage, i, step);
        }
#pragma unroll
        for (int j = 0; j < columns / 2; ++j) {
            b_.read(b_words_[step % 2][j], stage + TileA::size_bytes, j, step);
        }
    }

    /// Returns what `multiply` adds to.
    __device__ __forceinline__ static auto& sums_of(StageSums& of_stage, Accumulators& of_all)
    {
        if constexpr (has_stage_sums) {
            return of_stage;
        } else {
            return of_all;
        }
    }

    /// Multiplies the fragments of `step`.
    template <class Sums>
    __device__ __forceinline__ void multiply(Sums& sums, int step) const
    {
        constexpr int half = PartB::chunks;
#pragma unroll
        for (int i = 0; i < rows; ++i) {
            PartA a;
#pragma unroll
            for (int word = 0; word < ReaderA::words; ++word) {
                a.words[word] = a_words_[step % 2][i][word];
            }
#pragma unroll
            for (int n = 0; n < columns; ++n) {
                const int j = i % 2 == 0 ? n : columns - 1 - n;  // at the turn, an operand is still there
                PartB b;
#pragma unroll
                for (int word = 0; word < half; ++word) {
                    b.words[word] = b_words_[step % 2][j / 2][j % 2 * half + word];
                }
                mma(sums[i][j], a, b);
            }
        }
    }

    /// After the last step of a stage: adds the stage's sums to those of all stages and begins anew, if they are kept apart.
    /// @param two_level  of sums in f32: false if they go on to the next stage
    __device__ __forceinline__ static void end_stage(StageSums& of_stage, Accumulators& to, bool two_level)
    {
        if constexpr (has_stage_sums) {
            if (config.f16_sums || two_level) {
                promote(of_stage, to);
            }
        }
    }

private:
    __device__ __forceinline__ static void promote(StageSums& of_stage, Accumulators& to)
    {
#pragma unroll
        for (int i = 0; i < rows; ++i) {
#pragma unroll
            for (int j = 0; j < columns; ++j) {
#pragma unroll
                for (int value = 0; value < 4; ++value) {
                    to[i][j][value] += of_stage[i][j][value];
                    of_stage[i][j][value] = {};
                }
            }
        }
    }

    ReaderA a_;
    ReaderB b_;
    std::uint32_t a_words_[2][rows][ReaderA::words];
    std::uint32_t b_words_[2][columns / 2][ReaderB::words];
};

/// What a CTA multiplies along K, in steps of a stage.
struct MmaSteps {
    std::uint32_t first;
    int count;
};

/// What a CTA computes: a tile, or a part of one along K.
struct MmaWork {
    std::uint32_t tile;
    std::uint32_t part;
    std::uint32_t parts;  // of the tile

    /// @param cta  its number
    __device__ MmaWork(const MmaArguments& arguments, std::uint32_t cta) : tile(cta), part(0), parts(1)
    {
        if (arguments.parts > 1 && cta >= arguments.whole_tiles) {
            const std::uint32_t index = cta - arguments.whole_tiles;
            const std::uint32_t quotient = arguments.in_turn.quotient(index);
            const std::uint32_t rest = index - quotient * arguments.in_turn.value();
            tile = arguments.whole_tiles + (arguments.parts_in_turn ? rest : quotient);
            part = arguments.parts_in_turn ? quotient : rest;
            parts = arguments.parts;
        }
    }

    __device__ MmaSteps steps(const MmaArguments& arguments) const
    {
        const std::uint32_t first = part * arguments.part_steps + min(part, arguments.longer_parts);
        const std::uint32_t count = part + 1 == parts ? arguments.tile_steps - first
                                                      : arguments.part_steps + (part < arguments.longer_parts ? 1 : 0);
        return {.first = first, .count = static_cast<int>(count)};
    }
};

/// What a CTA's tile has of an operand along x, which is m or n.
struct MmaExtent {
    std::int64_t first;
    std::int64_t end;    // of the operand, or of the gates
    std::int64_t to_up;  // 0, or from a gate to its up: then half of the tile are the ups of the other half
};

/// Columns of a tile of B that are gates, before as many that are their ups, where B has them side by side: as few as keep
/// each thread's copies to one of the two, or half a tile if TMA loads it.
template <class Config, class TileB>
inline constexpr int mma_gates_in_turn = mma_loads_by_tma<Config> ? Config::config.tile_n / 2
                                         : TileB::k_major         ? 8
                                                                  : TileB::in_chunk;

template <class Config>
__device__ __forceinline__ MmaExtent mma_extent_of_a(const GemmArguments& gemm, const TilePosition& tile)
{
    return {.first = static_cast<std::int64_t>(tile.row) * Config::config.tile_m, .end = gemm.m, .to_up = 0};
}

template <class Config>
__device__ __forceinline__ MmaExtent mma_extent_of_b(const GemmArguments& gemm, const TilePosition& tile)
{
    constexpr int tile_n = Config::config.tile_n;
    MmaExtent extent{.first = static_cast<std::int64_t>(tile.column) * tile_n, .end = gemm.n, .to_up = 0};
    if (gemm.gating == Gating::side_by_side) {
        extent.first = static_cast<std::int64_t>(tile.column) * (tile_n / 2);
        extent.end = gemm.n / 2;
        extent.to_up = gemm.n / 2;
    }
    return extent;
}

}  // namespace tessera::kernels
