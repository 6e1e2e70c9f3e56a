#include "tessera/tile.cuh"
#include "tile_programs.hpp"

namespace tessera::test {
namespace {

template <class T, int Rows, int Columns, RowProgram What>
struct OfRows {
    tile::Input<T, Rows, Columns> x;
    tile::Output<T, Rows, Columns> y;
    float columns;  // of the matrix

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, tile::convert<T>(computed(at)));
        }
    }

private:
    TESSERA_TILE auto computed(auto at) const
    {
        if constexpr (What == RowProgram::scale) {
            return x.load(at) * 2.0 + 1;
        } else if constexpr (What == RowProgram::softmax) {
            const auto value = tile::convert<float>(x.load(at, -INFINITY));
            const auto power = tile::exp(value - tile::row_maxima(value));
            return power / tile::row_sums(power);
        } else if constexpr (What == RowProgram::normalize) {
            const auto value = tile::convert<float>(x.load(at));
            const auto inside = tile::iota_columns(value) < static_cast<int>(columns);
            const auto centred = tile::where(inside, value - tile::row_sums(value) / columns, 0.0F);
            return centred * tile::rsqrt(tile::row_sums(centred * centred) / columns);
        } else if constexpr (What == RowProgram::less_column) {
            const auto value = tile::convert<float>(x.load(at));
            return value - tile::column_sums(value) / static_cast<float>(Rows);
        } else if constexpr (What == RowProgram::less_tile) {
            const auto value = tile::convert<float>(x.load(at));
            return value - tile::row_sums(tile::column_sums(value)) / static_cast<float>(Rows * Columns);
        } else if constexpr (What == RowProgram::transposed) {
            const auto turned = tile::transpose(tile::convert<float>(x.load(at)));
            return tile::transpose(turned + turned);
        } else {
            const auto value = tile::convert<float>(x.load(at));
            const auto place = tile::iota_rows(value) * 1000 + tile::iota_columns(value);
            return tile::where(value > 0, tile::convert<float>(place), value);
        }
    }
};

}  // namespace

template <class T, int Rows, int Columns>
void tile_rows(StreamRef stream, RowProgram program, const MatrixView<const T>& x, const MatrixView<T>& y)
{
    const auto columns = static_cast<float>(x.columns());
    const auto run = [&]<RowProgram What>() { tile::launch(stream, OfRows<T, Rows, Columns, What>{x, y, columns}); };
    switch (program) {
        case RowProgram::scale: return run.template operator()<RowProgram::scale>();
        case RowProgram::softmax: return run.template operator()<RowProgram::softmax>();
        case RowProgram::normalize: return run.template operator()<RowProgram::normalize>();
        case RowProgram::less_column:
            if constexpr (Rows > 1) {
                run.template operator()<RowProgram::less_column>();
            }
            return;
        case RowProgram::less_tile:
            if constexpr (Rows > 1) {
                run.template operator()<RowProgram::less_tile>();
            }
            return;
        case RowProgram::transposed: return run.template operator()<RowProgram::transposed>();
        case RowProgram::positions: return run.template operator()<RowProgram::positions>();
    }
}

template void tile_rows<float, 1, 1024>(StreamRef, RowProgram, const MatrixView<const float>&,
                                        const MatrixView<float>&);
template void tile_rows<float, 1, 768>(StreamRef, RowProgram, const MatrixView<const float>&, const MatrixView<float>&);
template void tile_rows<float, 2, 2048>(StreamRef, RowProgram, const MatrixView<const float>&,
                                        const MatrixView<float>&);
template void tile_rows<float, 4, 32>(StreamRef, RowProgram, const MatrixView<const float>&, const MatrixView<float>&);
template void tile_rows<f16, 16, 128>(StreamRef, RowProgram, const MatrixView<const f16>&, const MatrixView<f16>&);
template void tile_rows<bf16, 2, 4096>(StreamRef, RowProgram, const MatrixView<const bf16>&, const MatrixView<bf16>&);

}  // namespace tessera::test
