#pragma once

/// A tile GEMM of bf16, in steps of 64: compiled ahead of time by counted_tiles, and at run time.

#include <tessera/tile.cuh>

namespace tile = tessera::tile;

template <int M, int N, class OrderB>
struct TileGemm {
    static constexpr tile::Hints hints{.warpgroups = M == 64 ? 1 : 2};
    tile::Input<tessera::bf16, M, 64> a;
    tile::Input<tessera::bf16, 64, N, OrderB> b;
    tile::Output<tessera::bf16, M, N> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, M, N>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<tessera::bf16>(sum));
        }
    }
};
