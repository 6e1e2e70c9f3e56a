#include "tile_products.cuh"

namespace tessera::test {

TESSERA_TEST_TILE_PRODUCT(bf16, bf16, bf16, RowMajor, RowMajor, RowMajor)
TESSERA_TEST_TILE_PRODUCT(bf16, bf16, float, ColumnMajor, ColumnMajor, RowMajor)
TESSERA_TEST_TILE_PRODUCT(tf32, tf32, float, RowMajor, ColumnMajor, RowMajor)

template <class T, int M, int N, int D, bool Causal>
struct Attention {
    tile::Input<T, M, D> q;
    tile::Input<T, D, N, ColumnMajor> k;  // transposed
    tile::Input<T, N, D> v;
    tile::Output<T, M, D> z;
    int length;
    float scale;
    static constexpr tile::Hints hints{.warps_m = 8, .warps_n = 1};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : z.tiles_from_last_row(cta)) {
            const auto query = tile::hold(cta, q, at);
            auto sum = tile::zeros<float, M, D>(cta);
            auto highest = tile::full<float, M, 1>(cta, -INFINITY);
            auto total = tile::full<float, M, 1>(cta, 0.0F);
            const std::int64_t end = Causal ? at.first_row() + M : length;
            const auto keys = k.row(0, at.batch()).until(end);
            const auto values = v.column(0, at.batch()).until(end);
            for (auto [key, value] : tile::stream(cta, keys, values)) {
                auto score = mma(query, key, tile::zeros<float, M, N>(cta)) * (scale * 1.44269504F);
                if (key.first_column() + N > (Causal ? at.first_row() : length)) {
                    const auto column = tile::iota_columns(score) + static_cast<int>(key.first_column());
                    const auto row = tile::iota_rows(score) + static_cast<int>(at.first_row());
                    score = tile::where(column < length && (column <= row || !Causal), score, -INFINITY);
                }
                const auto higher = tile::max(highest, tile::row_maxima(score));
                const auto weight = tile::exp2(score - higher);
                const auto factor = tile::exp2(highest - higher);
                total = total * factor + tile::row_sums(weight);
                sum = sum * factor;
                sum = mma(tile::convert<T>(weight), value, sum);
                highest = higher;
            }
            z.store(at, tile::convert<T>(sum / total));
        }
    }
};

template <class T>
tile::LaunchReport tile_attention(StreamRef stream, const BatchView<const T>& q, const BatchView<const T>& k,
                                  const BatchView<const T>& v, const BatchView<T>& z, float scale, bool causal)
{
    const auto length = static_cast<int>(k.first().rows());
    if (causal) {
        return tile::launch(stream, Attention<T, 128, 64, 128, true>{q, k.transposed(), v, z, length, scale});
    }
    return tile::launch(stream, Attention<T, 128, 64, 128, false>{q, k.transposed(), v, z, length, scale});
}
template tile::LaunchReport tile_attention<bf16>(StreamRef, const BatchView<const bf16>&, const BatchView<const bf16>&,
                                                 const BatchView<const bf16>&, const BatchView<bf16>&, float, bool);

}  // namespace tessera::test
