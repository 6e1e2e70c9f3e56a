#pragma once

/// Products of bf16 in tiles of (M, N) whose hints want clusters. `Rows` and `Columns` are those of a cluster's places.

#include "tessera/tile.cuh"

namespace tessera::test {

template <int M, int Rows, int Columns, bool WholeTiles = false>
inline constexpr tile::Hints cluster_hints{
    .warpgroups = M == 64 ? 1 : 2, .whole_tiles = WholeTiles, .cluster = Rows * Columns, .cluster_columns = Columns};

/// D = A * B.
template <int M, int N, int Rows, int Columns, bool WholeTiles = false, class OrderB = RowMajor>
struct ClusterGemm {
    static constexpr tile::Hints hints = cluster_hints<M, Rows, Columns, WholeTiles>;
    tile::Input<bf16, M, 64> a;
    tile::Input<bf16, 64, N, OrderB> b;
    tile::Output<bf16, M, N> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, M, N>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<bf16>(sum));
        }
    }
};

/// What a program does otherwise.
enum class Otherwise { holds_a, from_last_row, asks_row, asks_column, branches_by_column, cuts_bands, shares_nothing };

/// The same, with a difference. What is cut or not shared is the same product.
template <Otherwise How, int Rows, int Columns, int Extent>
struct OtherGemm {
    static constexpr int m = Extent;
    static constexpr int n = Extent;
    static constexpr tile::Hints hints = cluster_hints<m, Rows, Columns>;
    tile::Input<bf16, m, 64> a;
    tile::Input<bf16, 64, n> b;
    tile::Output<bf16, m, n> d;
    int k;

    TESSERA_TILE void operator()(auto cta) const
    {
        const auto places = [&] {
            if constexpr (How == Otherwise::from_last_row) {
                return d.tiles_from_last_row(cta);
            } else {
                return d.tiles(cta);
            }
        }();
        for (auto at : places) {
            if constexpr (How == Otherwise::branches_by_column) {
                if (at.first_column() < 0) {  // never
                    continue;
                }
            }
            auto sum = tile::zeros<float, m, n>(cta);
            if constexpr (How == Otherwise::holds_a) {
                const auto left = tile::hold(cta, a.row(at));
                for (auto [right] : tile::stream(cta, b.column(at))) {
                    sum = mma(left, right, sum);
                }
            } else {
                for (auto [left, right] : tile::stream(cta, rows_of(at), columns_of(at))) {
                    sum = mma(left, right, sum);
                }
            }
            d.store(at, tile::convert<bf16>(sum));
        }
    }

private:
    TESSERA_TILE auto rows_of(const auto& at) const
    {
        if constexpr (How == Otherwise::asks_row) {
            return a.row(at.tile_row());
        } else if constexpr (How == Otherwise::cuts_bands || How == Otherwise::shares_nothing) {
            return a.row(at).until(k);
        } else {
            return a.row(at);
        }
    }
    TESSERA_TILE auto columns_of(const auto& at) const
    {
        if constexpr (How == Otherwise::asks_column) {
            return b.column(at.tile_column());
        } else if constexpr (How == Otherwise::shares_nothing) {
            return b.column(at).until(k);
        } else {
            return b.column(at);
        }
    }
};

}  // namespace tessera::test
