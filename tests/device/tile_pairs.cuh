#pragma once

/// Products in tiles of (128, N) that pairs of CTAs multiply on Blackwell: each loads half of a tile of B.

#include "tessera/tile.cuh"

namespace tessera::test {

/// D = A * B.
/// @tparam ClusterRows, ClusterColumns  of a cluster's places; 0: no cluster is wished for
template <class T, int N, class OrderB, int ClusterRows = 0, int ClusterColumns = 1>
struct PairGemm {
    static constexpr int k = 128 / static_cast<int>(sizeof(T));
    static constexpr tile::Hints hints{
        .warps_n = N % 32 == 0 ? 2 : 1, .cluster = ClusterRows * ClusterColumns, .cluster_columns = ClusterColumns};
    tile::Input<T, 128, k> a;
    tile::Input<T, k, N, OrderB> b;
    tile::Output<float, 128, N> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, N>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<float>(sum));
        }
    }
};

}  // namespace tessera::test
