#include "tessera/tile.cuh"
#include "tile_programs.hpp"

namespace tessera::test {
namespace {

constexpr int m_of_tile = 128, n_of_tile = 64, k_of_tile = 32;

/// d = a * b + bias, with what is compiled in.
template <bool Whole, class ExtentsA, class ExtentsB, class ExtentsD>
struct Fixed {
    tile::Input<f16, m_of_tile, k_of_tile, RowMajor, ExtentsA> a;
    tile::Input<f16, k_of_tile, n_of_tile, RowMajor, ExtentsB> b;
    tile::Input<float, 1, n_of_tile> bias;
    tile::Output<float, m_of_tile, n_of_tile, RowMajor, ExtentsD> d;
    static constexpr tile::Hints hints{.whole_tiles = Whole};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, m_of_tile, n_of_tile>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, sum + bias.load(at));
        }
    }
};

/// y = 2 * x + 1.
template <bool Whole, class E>
struct FixedRows {
    tile::Input<float, 4, 128, RowMajor, E> x;
    tile::Output<float, 4, 128, RowMajor, E> y;
    static constexpr tile::Hints hints{.whole_tiles = Whole};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at) * 2.0 + 1);
        }
    }
};

/// d = rows of a * b + rows of c.
struct OfGathered {
    tile::Input<f16, m_of_tile, k_of_tile> a;
    tile::Input<f16, k_of_tile, n_of_tile> b;
    tile::Input<float, m_of_tile, n_of_tile> c;
    tile::Output<float, m_of_tile, n_of_tile> d;
    tile::Numbers<int> rows;

    TESSERA_TILE void operator()(auto cta) const
    {
        const auto left_rows = tile::gather(a, rows);
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, m_of_tile, n_of_tile>(cta);
            for (auto [left, right] : tile::stream(cta, left_rows.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, sum + tile::gather(c, rows).load(at));
        }
    }
};

/// y = rows of x.
struct OfRows {
    tile::Input<f16, 16, 128> x;
    tile::Output<f16, 16, 128> y;
    tile::Numbers<int> rows;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, tile::gather(x, rows).load(at));
        }
    }
};

/// d = a * b, and the sums of its columns, of its rows, and of all.
struct Totals {
    tile::Input<f16, m_of_tile, k_of_tile> a;
    tile::Input<f16, k_of_tile, n_of_tile> b;
    tile::Output<float, m_of_tile, n_of_tile> d;
    tile::Output<float, 1, n_of_tile> columns;
    tile::Output<float, m_of_tile, 1> rows;
    tile::Output<float, m_of_tile, n_of_tile> twice;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, m_of_tile, n_of_tile>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            const auto value = tile::convert<float>(sum);
            d.store(at, value);
            tile::atomic_add(columns, at, tile::column_sums(value));
            tile::atomic_add(rows, at, tile::row_sums(value));
            tile::atomic_add(twice, at, value);
            tile::atomic_add(twice, at, value);
        }
    }
};

using Any = tile::Extents<>;

}  // namespace

tile::LaunchReport tile_fixed_product(StreamRef stream, FixedProgram program, const MatrixView<const f16>& a,
                                      const MatrixView<const f16>& b, const MatrixView<const float>& bias,
                                      const MatrixView<float>& d)
{
    switch (program) {
        case FixedProgram::whole: return tile::launch(stream, Fixed<true, Any, Any, Any>{a, b, bias, d});
        case FixedProgram::extents:
            return tile::launch(
                stream,
                Fixed<false, tile::Extents<256, 96>, tile::Extents<96, 128>, tile::Extents<256, 128>>{a, b, bias, d});
        case FixedProgram::ragged_extents:
            return tile::launch(
                stream,
                Fixed<false, tile::Extents<200, tile::any_extent>, tile::Extents<80, 136>, tile::Extents<200, 136>>{
                    a, b, bias, d});
    }
    return {};
}

void tile_fixed_rows(StreamRef stream, FixedProgram program, const MatrixView<const float>& x,
                     const MatrixView<float>& y)
{
    switch (program) {
        case FixedProgram::whole: tile::launch(stream, FixedRows<true, Any>{x, y}); break;
        case FixedProgram::extents: tile::launch(stream, FixedRows<false, tile::Extents<8, 256>>{x, y}); break;
        case FixedProgram::ragged_extents: tile::launch(stream, FixedRows<false, tile::Extents<7, 250>>{x, y}); break;
    }
}

tile::LaunchReport tile_gathered_product(StreamRef stream, const MatrixView<const f16>& a,
                                         const MatrixView<const f16>& b, const MatrixView<const float>& c,
                                         const DeviceSpan<const int>& rows, const MatrixView<float>& d)
{
    return tile::launch(stream, OfGathered{a, b, c, d, rows});
}

void tile_gathered_rows(StreamRef stream, const MatrixView<const f16>& x, const DeviceSpan<const int>& rows,
                        const MatrixView<f16>& y)
{
    tile::launch(stream, OfRows{x, y, rows});
}

tile::LaunchReport tile_totals(StreamRef stream, const BatchView<const f16>& a, const MatrixView<const f16>& b,
                               const BatchView<float>& d, const MatrixView<float>& columns,
                               const MatrixView<float>& rows, const BatchView<float>& twice)
{
    return tile::launch(stream, Totals{a, b, d, columns, rows, twice});
}

}  // namespace tessera::test
