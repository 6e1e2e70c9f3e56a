#pragma once

/// The tile programs that `tessera-bench tiles` measures, with bounds checks and without.

#include <cmath>

#include "tessera/tile.cuh"
#include "tiles/tile_programs.hpp"

namespace tessera::bench::detail {

/// @tparam Rows, Columns  of a cluster's places, on Hopper; 1 and 1: the library's choice
template <bool Whole, int BM, int BN, int BK, int Warpgroups, int Rows, int Columns>
struct Gemm {
    tile::Input<bf16, BM, BK> a;
    tile::Input<bf16, BK, BN> b;
    tile::Output<bf16, BM, BN> d;
    static constexpr tile::Hints hints{.warpgroups = Warpgroups,
                                       .whole_tiles = Whole,
                                       .cluster = Rows * Columns > 1 ? Rows* Columns : 0,
                                       .cluster_columns = Columns};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, BM, BN>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<bf16>(sum));
        }
    }
};

template <bool Whole, int BM, int BN, int BK, int Warpgroups = 2, int Rows = 1, int Columns = 1>
void launch_gemm(StreamRef stream, const MatrixView<const bf16>& a, const MatrixView<const bf16>& b,
                 const MatrixView<bf16>& d)
{
    tile::launch(stream, Gemm<Whole, BM, BN, BK, Warpgroups, Rows, Columns>{a, b, d});
}

template <bool Whole>
struct Softmax {
    tile::Input<bf16, 1, most_row_elements> x;
    tile::Output<bf16, 1, most_row_elements> y;
    static constexpr tile::Hints hints{.whole_tiles = Whole};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto value = tile::convert<float>(x.load(at, -INFINITY));
            const auto power = tile::exp(value - tile::row_maxima(value));
            y.store(at, tile::convert<bf16>(power / tile::row_sums(power)));
        }
    }
};

template <bool Whole>
struct LayerNorm {
    tile::Input<bf16, 1, most_row_elements> x;
    tile::Output<bf16, 1, most_row_elements> y;
    int columns;
    static constexpr tile::Hints hints{.whole_tiles = Whole};

    TESSERA_TILE void operator()(auto cta) const
    {
        const auto count = static_cast<float>(columns);
        for (auto at : y.tiles(cta)) {
            const auto value = tile::convert<float>(x.load(at));
            auto centred = value - tile::row_sums(value) / count;
            if (columns < most_row_elements) {
                centred = tile::where(tile::iota_columns(centred) < columns, centred, 0.0F);
            }
            const auto variance = tile::row_sums(centred * centred) / count;
            y.store(at, tile::convert<bf16>(centred * tile::rsqrt(variance + 1e-5F)));
        }
    }
};

template <bool Whole, bool Causal>
struct Attention {
    static constexpr int rows = 128, step = 64, depth = attention_depth;
    tile::Input<bf16, rows, depth> q;
    tile::Input<bf16, depth, step, ColumnMajor> k;  // transposed
    tile::Input<bf16, step, depth> v;
    tile::Output<bf16, rows, depth> z;
    int length;
    static constexpr tile::Hints hints{.warps_m = 8, .warps_n = 1, .whole_tiles = Whole};

    TESSERA_TILE void operator()(auto cta) const
    {
        const float scale = 1.44269504F / sqrtf(depth);
        for (auto at : Causal ? z.tiles_from_last_row(cta) : z.tiles(cta)) {
            const auto query = tile::hold(cta, q, at);
            auto sum = tile::zeros<float, rows, depth>(cta);
            auto highest = tile::full<float, rows, 1>(cta, -INFINITY);
            auto total = tile::full<float, rows, 1>(cta, 0.0F);
            const std::int64_t end = Causal ? at.first_row() + rows : length;
            for (auto [key, value] :
                 tile::stream(cta, k.row(0, at.batch()).until(end), v.column(0, at.batch()).until(end))) {
                auto score = mma(query, key, tile::zeros<float, rows, step>(cta)) * scale;
                if (key.first_column() + step > (Causal ? at.first_row() : length)) {
                    const auto column = tile::iota_columns(score) + static_cast<int>(key.first_column());
                    const auto row = tile::iota_rows(score) + static_cast<int>(at.first_row());
                    score = tile::where(column < length && (column <= row || !Causal), score, -INFINITY);
                }
                const auto higher = tile::max(highest, tile::row_maxima(score));
                const auto weight = tile::exp2(score - higher);
                const auto factor = tile::exp2(highest - higher);
                total = total * factor + tile::row_sums(weight);
                sum = sum * factor;
                sum = mma(tile::convert<bf16>(weight), value, sum);
                highest = higher;
            }
            z.store(at, tile::convert<bf16>(sum / total));
        }
    }
};

/// All programs. @tparam Whole  without bounds checks: for matrices that are whole tiles
template <bool Whole>
TilePrograms tile_programs()
{
    TilePrograms programs;
    programs.products = {{"128x256x64", launch_gemm<Whole, 128, 256, 64>},
                         {"256x128x64", launch_gemm<Whole, 256, 128, 64>},
                         {"128x128x64", launch_gemm<Whole, 128, 128, 64>}};
    if constexpr (!Whole) {
        programs.products.push_back({"128x192x64", launch_gemm<Whole, 128, 192, 64>});
        programs.products.push_back({"128x128x128", launch_gemm<Whole, 128, 128, 128>});
        programs.products.push_back({"64x128x64", launch_gemm<Whole, 64, 128, 64, 1>});
        programs.products.push_back({"128x256x64 in 2x1", launch_gemm<Whole, 128, 256, 64, 2, 2, 1>});
        programs.products.push_back({"128x256x64 in 1x2", launch_gemm<Whole, 128, 256, 64, 2, 1, 2>});
        programs.products.push_back({"128x128x64 in 2x2", launch_gemm<Whole, 128, 128, 64, 2, 2, 2>});
    }
    programs.softmax = [](StreamRef stream, const MatrixView<const bf16>& x, const MatrixView<bf16>& y) {
        tile::launch(stream, Softmax<Whole>{x, y});
    };
    programs.layer_norm = [](StreamRef stream, const MatrixView<const bf16>& x, const MatrixView<bf16>& y) {
        tile::launch(stream, LayerNorm<Whole>{x, y, static_cast<int>(x.columns())});
    };
    programs.attention = [](StreamRef stream, const BatchView<const bf16>& q, const BatchView<const bf16>& k,
                            const BatchView<const bf16>& v, const BatchView<bf16>& z, bool causal) {
        const auto length = static_cast<int>(k.first().rows());
        if (causal) {
            tile::launch(stream, Attention<Whole, true>{q, k.transposed(), v, z, length});
        } else {
            tile::launch(stream, Attention<Whole, false>{q, k.transposed(), v, z, length});
        }
    };
    return programs;
}

}  // namespace tessera::bench::detail
