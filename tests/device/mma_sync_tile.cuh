#pragma once

/// What the kernels of the tests of mma.sync's narrow and sparse forms share: how one warp gets operands, factors and sums.

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "mma_sync_tile.hpp"
#include "tessera/device/mma_sync_scaled.cuh"
#include "tessera/device_span.hpp"

namespace tessera::test {

template <class T, unsigned Rows, unsigned RowBytes>
using TileOf = SharedTile<detail::tile_element<T>, Box<RowBytes / sizeof(T), Rows>,
                          RowBytes == 128 ? Swizzle::b128 : Swizzle::b64>;

template <class T, unsigned Rows, unsigned RowBytes>
__device__ void fill(TileOf<T, Rows, RowBytes>& tile, DeviceSpan<const std::uint8_t> bytes)
{
    constexpr unsigned row = RowBytes / sizeof(T);
    for (unsigned i = threadIdx.x; i < Rows * row; i += 32) {
        detail::tile_element<T> element;
        std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
        tile(i / row, i % row) = element;
    }
}

/// Calls `multiply(sums, row, column, step)` for each step along K, with its number as a type, of each 16 rows and 8 columns of D
/// (tile_m, tile_n). The sums begin with what D has, and are stored to it.
/// @tparam Steps  4 at most
template <unsigned Steps, class D, class Multiply>
__device__ void for_each_step(DeviceSpan<D> d, const Multiply& multiply)
{
    for (unsigned row = 0; row < tile_m; row += 16) {
        for (unsigned column = 0; column < tile_n; column += 8) {
            FragmentC<D, 16, 8> sums;
            const auto at = [&](unsigned i) { return (row + sums.row(i)) * tile_n + column + sums.column(i); };
            for (unsigned i = 0; i < 4; ++i) {
                sums[i] = d[at(i)];
            }
            const auto step = [&]<unsigned Step>(std::integral_constant<unsigned, Step> number) {
                if constexpr (Step < Steps) {
                    multiply(sums, row, column, number);
                }
            };
            step(std::integral_constant<unsigned, 0>());
            step(std::integral_constant<unsigned, 1>());
            step(std::integral_constant<unsigned, 2>());
            step(std::integral_constant<unsigned, 3>());
            for (unsigned i = 0; i < 4; ++i) {
                d[at(i)] = sums[i];
            }
        }
    }
}

/// Returns the word of a scale fragment of instruction `Step`: its factors are those from its place in the row on, of which there
/// are `Steps` times as many. NaN, in both types of factors, in lanes whose word does not count.
template <class Fragment, ScaleVector Vector, unsigned Step, unsigned Steps>
__device__ std::uint32_t load_factors(DeviceSpan<const std::uint8_t> scales, unsigned row)
{
    constexpr auto factors = static_cast<unsigned>(Vector);
    constexpr unsigned of_row = Steps * factors;  // in one word, or several
    constexpr unsigned bytes = of_row < 4 ? of_row : 4;
    std::uint32_t word = 0xFFFF'FFFF;
    for (unsigned i = 0; Fragment::counts() && i < bytes; ++i) {
        const std::uint32_t code = scales[row * of_row + Step * factors / 4 * 4 + i];
        word = (word & ~(0xFFU << (8 * i))) | code << (8 * i);
    }
    return word;
}

/// Calls `use` with an object of the type, a float in a byte of its own.
template <class Use>
auto with_byte_type(OperandType type, const Use& use)
{
    switch (type) {
        case OperandType::e4m3: return use(f8e4m3());
        case OperandType::e5m2: return use(f8e5m2());
        case OperandType::e2m3: return use(f6e2m3());
        case OperandType::e3m2: return use(f6e3m2());
        default: return use(f4e2m1());
    }
}

/// Returns `Type` factors' kernel of `f4e2m1x2` with B's factors in lane `place` of each four. A's are in the second pair if it is
/// odd.
/// @param choose  called with the pair and the lane as types
template <class Choose>
auto with_place(unsigned place, const Choose& choose)
{
    using std::integral_constant;
    switch (place) {
        case 0: return choose(integral_constant<unsigned, 0>(), integral_constant<unsigned, 0>());
        case 1: return choose(integral_constant<unsigned, 1>(), integral_constant<unsigned, 1>());
        case 2: return choose(integral_constant<unsigned, 0>(), integral_constant<unsigned, 2>());
        default: return choose(integral_constant<unsigned, 1>(), integral_constant<unsigned, 3>());
    }
}

}  // namespace tessera::test
