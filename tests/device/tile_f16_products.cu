#include "tile_products.cuh"

namespace tessera::test {

TESSERA_TEST_TILE_PRODUCT(f16, f16, f16, RowMajor, RowMajor, RowMajor)
TESSERA_TEST_TILE_PRODUCT(f16, f16, f16, RowMajor, ColumnMajor, RowMajor)
TESSERA_TEST_TILE_PRODUCT(f16, f16, float, ColumnMajor, RowMajor, RowMajor)
TESSERA_TEST_TILE_PRODUCT(f16, f16, float, ColumnMajor, ColumnMajor, ColumnMajor)

namespace {

struct HoldsFive {
    tile::Input<f16, 64, 64> a;
    tile::Output<f16, 64, 64> d;
    static constexpr tile::Hints hints{.warpgroups = 1, .warps_m = 2, .warps_n = 2};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            const auto first = tile::hold(cta, a, at);
            const auto second = tile::hold(cta, a, at);
            const auto third = tile::hold(cta, a, at);
            const auto fourth = tile::hold(cta, a, at);
            const auto fifth = tile::hold(cta, a, at);
            d.store(at, tile::convert<f16>(mma(first, fifth, tile::zeros<float, 64, 64>(cta))));
        }
    }
};

}  // namespace

void tile_holds_five(StreamRef stream, const MatrixView<const f16>& a, const MatrixView<f16>& d)
{
    tile::launch(stream, HoldsFive{a, d});
}

struct CentredProduct {
    tile::Input<f16, 128, 64> a;
    tile::Input<f16, 64, 128> b;
    tile::Output<float, 128, 128> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 128>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, sum - tile::column_sums(sum) / 128.0F);
        }
    }
};

void tile_centred_product(StreamRef stream, const MatrixView<const f16>& a, const MatrixView<const f16>& b,
                          const MatrixView<float>& d)
{
    tile::launch(stream, CentredProduct{a, b, d});
}

}  // namespace tessera::test
