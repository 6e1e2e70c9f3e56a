#pragma once

#include "tessera/tile.cuh"
#include "tile_programs.hpp"

namespace tessera::test {

template <class A, class B, class D, class OrderA, class OrderB, class OrderD, int M, int N, int K, tile::Hints Wishes>
struct Product {
    tile::Input<A, M, K, OrderA> a;
    tile::Input<B, K, N, OrderB> b;
    tile::Input<float, 1, N> bias;
    tile::Input<D, M, N, OrderD> c;
    tile::Output<D, M, N, OrderD> d;
    static constexpr tile::Hints hints = Wishes;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, M, N>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<D>(sum + bias.load(at) + tile::convert<float>(c.load(at))));
        }
    }
};

template <class A, class B, class D, class OrderA, class OrderB, class OrderD>
tile::LaunchReport tile_product(StreamRef stream, TileShape shape, const BatchView<const A, OrderA>& a,
                                const BatchView<const B, OrderB>& b, const MatrixView<const float>& bias,
                                const BatchView<const D, OrderD>& c, const BatchView<D, OrderD>& d)
{
    constexpr int k = 128 / static_cast<int>(sizeof(A));
    if (shape == TileShape::large) {
        constexpr tile::Hints hints{};
        return tile::launch(stream, Product<A, B, D, OrderA, OrderB, OrderD, 128, 128, k, hints>{a, b, bias, c, d});
    }
    constexpr tile::Hints hints{.warpgroups = 1, .warps_m = 2, .warps_n = 2, .stages = 3};
    return tile::launch(stream, Product<A, B, D, OrderA, OrderB, OrderD, 64, 64, k / 2, hints>{a, b, bias, c, d});
}

#define TESSERA_TEST_TILE_PRODUCT(A, B, D, ORDER_A, ORDER_B, ORDER_D)                                 \
    template tile::LaunchReport tile_product<A, B, D, ORDER_A, ORDER_B, ORDER_D>(                     \
        StreamRef, TileShape, const BatchView<const A, ORDER_A>&, const BatchView<const B, ORDER_B>&, \
        const MatrixView<const float>&, const BatchView<const D, ORDER_D>&, const BatchView<D, ORDER_D>&);

}  // namespace tessera::test
