#include "mma_sync_scaled_kernels.hpp"

#include "mma_sync_tile.cuh"
#include "tessera/device/mma_sync_scaled.cuh"

namespace tessera::test {

namespace {

template <class T>
constexpr unsigned k_of = std::is_same_v<T, f4e2m1x2> ? 64 : 32;

/// Calls `multiply(sums, a fragment, b fragment, row, column, step)` with a step's number as a type.
template <class A, class B, class D, class Multiply>
__device__ void multiply_tile(DeviceSpan<const std::uint8_t> a, DeviceSpan<const std::uint8_t> b, DeviceSpan<D> d,
                              const Multiply& multiply)
{
    __shared__ TileOf<A, tile_m, tile_row_bytes> a_tile;
    __shared__ TileOf<B, tile_n, tile_row_bytes> b_tile;
    fill<A, tile_m, tile_row_bytes>(a_tile, a);
    fill<B, tile_n, tile_row_bytes>(b_tile, b);
    __syncwarp();
    for_each_step<narrow_steps>(
        d, [&]<unsigned Step>(auto& sums, unsigned row, unsigned column, std::integral_constant<unsigned, Step> step) {
            multiply(sums, load_matrix<FragmentA<A, 16, k_of<A>>>(a_tile, row, 32 * Step),
                     load_matrix<FragmentB<B, 8, k_of<B>>>(b_tile, column, 32 * Step), row, column, step);
        });
}

template <class A, class B, class D>
__global__ void narrow_product(DeviceSpan<const std::uint8_t> a, DeviceSpan<const std::uint8_t> b, DeviceSpan<D> d)
{
    multiply_tile<A, B>(a, b, d, [](auto& sums, const auto& a_part, const auto& b_part, unsigned, unsigned, auto) {
        mma(sums, a_part, b_part);
    });
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
            constexpr unsigned byte = Step * static_cast<unsigned>(Vector) % 4;
            using ScaleA = ScaleFragmentA<Type, Vector, byte, Pair>;
            using ScaleB = ScaleFragmentB<Type, Vector, byte, Lane>;
            mma(sums, a_part, b_part,
                ScaleA{load_factors<ScaleA, Vector, Step, narrow_steps>(a_scales, row + ScaleA::row())},
                ScaleB{load_factors<ScaleB, Vector, Step, narrow_steps>(b_scales, column + ScaleB::column())});
        });
}

}  // namespace

template <class D>
NarrowProduct<D> narrow_product_kernel(OperandType a, OperandType b)
{
    return with_byte_type(a, [&](auto in_a) {
        return with_byte_type(
            b, [&](auto in_b) -> NarrowProduct<D> { return narrow_product<decltype(in_a), decltype(in_b), D>; });
    });
}
template NarrowProduct<float> narrow_product_kernel(OperandType a, OperandType b);
template NarrowProduct<f16> narrow_product_kernel(OperandType a, OperandType b);

NarrowScaledProduct narrow_scaled_product_kernel(OperandType a, OperandType b)
{
    return with_byte_type(a, [&](auto in_a) {
        return with_byte_type(b, [&](auto in_b) -> NarrowScaledProduct {
            return scaled_product<decltype(in_a), decltype(in_b), ScaleType::ue8m0, ScaleVector::x1, 1, 2>;
        });
    });
}

NarrowScaledProduct packed_scaled_product_kernel(ScaleType type, unsigned place)
{
    return with_place(place, [&](auto pair, auto lane) -> NarrowScaledProduct {
        return type == ScaleType::ue8m0
                   ? scaled_product<f4e2m1x2, f4e2m1x2, ScaleType::ue8m0, ScaleVector::x2, pair, lane>
                   : scaled_product<f4e2m1x2, f4e2m1x2, ScaleType::ue4m3, ScaleVector::x4, pair, lane>;
    });
}

}  // namespace tessera::test
