// The softmax of each row. A tile has whole rows: columns that the matrix does not have are loaded as minus infinity,
// which changes neither a maximum nor a sum of powers, and are not stored.
#include <tessera/tessera.hpp>
#include <tessera/tile.cuh>

#include <algorithm>
#include <stdexcept>

#include "common/exact_sum.hpp"
#include "tile_programs/sizes.hpp"

using namespace tessera;

namespace {

constexpr int most_columns = 1024;

struct Softmax {
    tile::Input<float, 4, most_columns> x;
    tile::Output<float, 4, most_columns> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto value = x.load(at, -INFINITY);
            const auto power = tile::exp(value - tile::row_maxima(value));
            y.store(at, power / tile::row_sums(power));
        }
    }
};

int run(std::int64_t rows, std::int64_t columns)
{
    if (columns > most_columns) {
        throw std::invalid_argument("a row has at most 1024 columns: it is in one tile");
    }
    auto x = examples::random_values<float>(static_cast<std::size_t>(rows * columns), 1);
    for (float& value : x) {
        value *= 8;
    }
    const Stream stream;
    const auto device_x = DeviceBuffer<float>::from_host(stream, x);
    DeviceBuffer<float> device_y(stream, x.size());
    tile::launch(stream, Softmax{device_x.matrix(rows, columns), device_y.matrix(rows, columns)});

    const auto y = device_y.to_vector();
    std::size_t wrong = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        const float* const in = x.data() + row * columns;
        const double largest = *std::max_element(in, in + columns);
        double sum = 0.0;
        for (std::int64_t j = 0; j < columns; ++j) {
            sum += std::exp(double{in[j]} - largest);
        }
        for (std::int64_t j = 0; j < columns; ++j) {
            const double expected = std::exp(double{in[j]} - largest) / sum;
            // exp of an argument down to -16 has an error of 2 + 16 ulp, or twice as many roundings, and the argument's
            // own rounding counts 16 times: for the power and the sum. Then the additions, the reciprocal, the product.
            const double error =
                expected * examples::gamma(2 * (36 + 16) + double(columns) + 5, examples::f32_roundoff);
            const float result = y[static_cast<std::size_t>(row * columns + j)];
            wrong += std::fabs(double{result} - expected) <= error ? 0 : 1;
        }
    }
    return examples::verdict("tile_softmax: softmax of each row", wrong, y.size());
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_with_sizes<2>("tile_softmax", "rows columns", argc, argv, {203, 997}, run);
}
