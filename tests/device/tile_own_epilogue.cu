#include "tessera/tile/gemm.cuh"
#include "tile_programs.hpp"

namespace tessera::test {
namespace {

struct OfPlaces {
    int period;
    TESSERA_TILE float operator()(float value, int row, int /*column*/, float of_column, float of_row,
                                  float of_element) const
    {
        return fmaxf(value + of_column - of_row, of_element * static_cast<float>(row % period));
    }
};

/// y = activation(x).
struct OfElements {
    tile::Input<float, 8, 128> x;
    tile::Output<float, 8, 128> y;
    Activation kind;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto value = x.load(at);
            switch (kind) {
                case Activation::none: y.store(at, value); break;
                case Activation::relu: y.store(at, tile::relu(value)); break;
                case Activation::gelu: y.store(at, tile::gelu(value)); break;
                case Activation::silu: y.store(at, tile::silu(value)); break;
                case Activation::gelu_tanh: y.store(at, tile::gelu_tanh(value)); break;
                case Activation::sigmoid: y.store(at, tile::sigmoid(value)); break;
                case Activation::tanh: y.store(at, tile::tanh(value)); break;
            }
        }
    }
};

}  // namespace

void tile_activation(StreamRef stream, Activation kind, const MatrixView<const float>& x, const MatrixView<float>& y)
{
    tile::launch(stream, OfElements{x, y, kind});
}

void activated_product(StreamRef stream, const MatrixView<const f16>& a, const MatrixView<const f16>& b,
                       const DeviceSpan<const float>& bias, const MatrixView<float>& d)
{
    Gemm::launch(stream, a, b, d, tile::epilogue(tile::Activate<Activation::gelu>{}, tile::per_column(bias)));
}

void own_epilogue(StreamRef stream, const BatchView<const f16>& a, const BatchView<const f16, ColumnMajor>& b,
                  const DeviceSpan<const float>& of_columns, const DeviceSpan<const f16>& of_rows,
                  const BatchView<const f16>& of_elements, const BatchView<float>& d)
{
    Gemm::launch(stream, a, b, d,
                 tile::epilogue(OfPlaces{3}, tile::per_column(of_columns), tile::per_row(of_rows),
                                tile::per_element(of_elements)));
}

}  // namespace tessera::test
