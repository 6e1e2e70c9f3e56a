#include "mma_sync_scaled_kernels.hpp"

#include "tessera/device/mma_sync_scaled.cuh"

namespace tessera::test {

namespace {

template <class T, unsigned Rows>
using TileOf = SharedTile<detail::tile_element<T>, Box<narrow_row_bytes, Rows>, Swizzle::b128>;

template <class T, unsigned Rows>
__device__ void fill(TileOf<T, Rows>& tile, DeviceSpan<const std::uint8_t> rows)
{
    for (unsigned i = threadIdx.x; i < Rows * narrow_row_bytes; i += 32) {
        if constexpr (detail::is_float_8<T>) {
            tile(i / narrow_row_bytes, i % narrow_row_bytes) = T::from_bits(rows[i]);
        } else {
            tile(i / narrow_row_bytes, i % narrow_row_bytes) = rows[i];
        }
    }
}

template <class T>
constexpr unsigned k_of = std::is_same_v<T, f4e2m1x2> ? 64 : 32;

/// Calls `multiply(sums, a fragment, b fragment, row, column, step)` with a step's number as a type.
template <class A, class B, class D, class Multiply>
__device__ void multiply_tile(DeviceSpan<const std::uint8_t> a, DeviceSpan<const std::uint8_t> b, DeviceSpan<D> d,
                              const Multiply& multiply)
{
    __shared__ TileOf<A, narrow_m> a_tile;
    __shared__ TileOf<B, narrow_n> b_tile;
    fill<A, narrow_m>(a_tile, a);
    fill<B, narrow_n>(b_tile, b);
    __syncwarp();
    for (unsigned row = 0; row < narrow_m; row += 16) {
        for (unsigned column = 0; column < narrow_n; column += 8) {
            FragmentC<D, 16, 8> sums;
            const auto at = [&](unsigned i) { return (row + sums.row(i)) * narrow_n + column + sums.column(i); };
            for (unsigned i = 0; i < 4; ++i) {
                sums[i] = d[at(i)];
            }
            const auto step = [&]<unsigned Step>(std::integral_constant<unsigned, Step> number) {
                multiply(sums, load_matrix<FragmentA<A, 16, k_of<A>>>(a_tile, row, 32 * Step),
                         load_matrix<FragmentB<B, 8, k_of<B>>>(b_tile, column, 32 * Step), row, column, number);
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

template <class A, class B, class D>
__global__ void narrow_product(DeviceSpan<const std::uint8_t> a, DeviceSpan<const std::uint8_t> b, DeviceSpan<D> d)
{
    multiply_tile<A, B>(a, b, d, [](auto& sums, const auto& a_part, const auto& b_part, unsigned, unsigned, auto) {
        mma(sums, a_part, b_part);
    });
}

/// The four bytes from `first` on; NaN, in both types of factors, in lanes whose word does not count.
__device__ std::uint32_t load_word(DeviceSpan<const std::uint8_t> scales, std::size_t first, bool counts)
{
    std::uint32_t word = 0xFFFF'FFFF;
    for (unsigned i = 0; counts && i < 4; ++i) {
        word = word << 8 | scales[first + 3 - i];
    }
    return word;
}

template <class A, class B, ScaleType Type, ScaleVector Vector, unsigned Pair, unsigned Lane>
__global__ void scaled_product(DeviceSpan<const std::uint8_t> a, DeviceSpan<const std::uint8_t> b,
                               DeviceSpan<const std::uint8_t> a_scales, DeviceSpan<const std::uint8_t> b_scales,
                               DeviceSpan<float> d)
{
    multiply_tile<A, B>(
        a, b, d,
        [&]<unsigned Step>(auto& sums, const auto& a_part, const auto& b_part, unsigned row, unsigned column,
                           std::integral_constant<unsigned, Step>) {
            constexpr auto factors = static_cast<unsigned>(Vector);
            constexpr unsigned of_row = narrow_steps * factors;
            constexpr unsigned byte = Step * factors % 4, word = Step * factors / 4;
            using ScaleA = ScaleFragmentA<Type, Vector, byte, Pair>;
            using ScaleB = ScaleFragmentB<Type, Vector, byte, Lane>;
            mma(sums, a_part, b_part,
                ScaleA{load_word(a_scales, (row + ScaleA::row()) * of_row + 4 * word, ScaleA::counts())},
                ScaleB{load_word(b_scales, (column + ScaleB::column()) * of_row + 4 * word, ScaleB::counts())});
        });
}

/// Calls `use` with an object of the type.
template <class Use>
auto with_type(OperandType type, const Use& use)
{
    switch (type) {
        case OperandType::e4m3: return use(f8e4m3());
        case OperandType::e5m2: return use(f8e5m2());
        case OperandType::e2m3: return use(f6e2m3());
        case OperandType::e3m2: return use(f6e3m2());
        default: return use(f4e2m1());
    }
}

}  // namespace

template <class D>
NarrowProduct<D> narrow_product_kernel(OperandType a, OperandType b)
{
    return with_type(a, [&](auto in_a) {
        return with_type(
            b, [&](auto in_b) -> NarrowProduct<D> { return narrow_product<decltype(in_a), decltype(in_b), D>; });
    });
}
template NarrowProduct<float> narrow_product_kernel(OperandType a, OperandType b);
template NarrowProduct<f16> narrow_product_kernel(OperandType a, OperandType b);

NarrowScaledProduct narrow_scaled_product_kernel(OperandType a, OperandType b)
{
    return with_type(a, [&](auto in_a) {
        return with_type(b, [&](auto in_b) -> NarrowScaledProduct {
            return scaled_product<decltype(in_a), decltype(in_b), ScaleType::ue8m0, ScaleVector::x1, 1, 2>;
        });
    });
}

NarrowScaledProduct packed_scaled_product_kernel(ScaleType type, unsigned place)
{
    const auto choose = [&]<ScaleType Type, ScaleVector Vector>() -> NarrowScaledProduct {
        switch (place) {
            case 0: return scaled_product<f4e2m1x2, f4e2m1x2, Type, Vector, 0, 0>;
            case 1: return scaled_product<f4e2m1x2, f4e2m1x2, Type, Vector, 1, 1>;
            case 2: return scaled_product<f4e2m1x2, f4e2m1x2, Type, Vector, 0, 2>;
            default: return scaled_product<f4e2m1x2, f4e2m1x2, Type, Vector, 1, 3>;
        }
    };
    return type == ScaleType::ue8m0 ? choose.operator()<ScaleType::ue8m0, ScaleVector::x2>()
                                    : choose.operator()<ScaleType::ue4m3, ScaleVector::x4>();
}

}  // namespace tessera::test
