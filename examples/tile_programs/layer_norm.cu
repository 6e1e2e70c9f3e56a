// Layer normalization in bf16: y = (x - mean) / sqrt(variance + epsilon) * weight + bias, of each row. The weight and
// the bias are row vectors, which meet each row of a tile.
#include <tessera/tessera.hpp>
#include <tessera/tile.cuh>

#include <stdexcept>

#include "common/exact_sum.hpp"
#include "tile_programs/sizes.hpp"

using namespace tessera;

namespace {

constexpr int most_columns = 1024;
constexpr float epsilon = 1e-5F;

struct LayerNorm {
    tile::Input<bf16, 4, most_columns> x;
    tile::Input<float, 1, most_columns> weight;
    tile::Input<float, 1, most_columns> bias;
    tile::Output<bf16, 4, most_columns> y;
    int columns;  // of x: a tile may have more

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto value = tile::convert<float>(x.load(at));
            const auto n = static_cast<float>(columns);
            const auto inside = tile::iota_columns(value) < columns;
            const auto centred = tile::where(inside, value - tile::row_sums(value) / n, 0.0F);
            const auto scale = tile::rsqrt(tile::row_sums(centred * centred) / n + epsilon);
            y.store(at, tile::convert<bf16>(centred * scale * weight.load(at) + bias.load(at)));
        }
    }
};

int run(std::int64_t rows, std::int64_t columns)
{
    if (columns > most_columns) {
        throw std::invalid_argument("a row has at most 1024 columns: it is in one tile");
    }
    const auto x = examples::random_values<bf16>(static_cast<std::size_t>(rows * columns), 1);
    const auto weight = examples::random_values<float>(static_cast<std::size_t>(columns), 2);
    const auto bias = examples::random_values<float>(static_cast<std::size_t>(columns), 3);
    const Stream stream;
    const auto device_x = DeviceBuffer<bf16>::from_host(stream, x);
    const auto device_weight = DeviceBuffer<float>::from_host(stream, weight);
    const auto device_bias = DeviceBuffer<float>::from_host(stream, bias);
    DeviceBuffer<bf16> device_y(stream, x.size());
    tile::launch(stream,
                 LayerNorm{device_x.matrix(rows, columns), device_weight.matrix(1, columns),
                           device_bias.matrix(1, columns), device_y.matrix(rows, columns), static_cast<int>(columns)});

    const auto y = device_y.to_vector();
    constexpr double u = examples::f32_roundoff;
    const auto n = static_cast<double>(columns);
    std::size_t wrong = 0;
    for (std::int64_t row = 0; row < rows; ++row) {
        const auto in = [&](std::int64_t j) { return double{float(x[static_cast<std::size_t>(row * columns + j)])}; };
        double sum = 0.0, magnitude = 0.0, squares = 0.0, distances = 0.0;
        for (std::int64_t j = 0; j < columns; ++j) {
            sum += in(j);
            magnitude += std::fabs(in(j));
        }
        const double mean = sum / n;
        for (std::int64_t j = 0; j < columns; ++j) {
            squares += (in(j)-mean) * (in(j)-mean);
            distances += std::fabs(in(j)-mean);
        }
        const double variance = squares / n + double{epsilon};
        // The errors of the mean, of a difference to it (at most 2), of the variance, and, relatively, of the scale.
        const double mean_error = examples::gamma(n + 4, u) * magnitude / n;
        const double centred_error = mean_error + 2 * u;
        const double variance_error = centred_error * (2 * distances / n + centred_error) +
                                      examples::gamma(n + 6, u) * (variance + centred_error);
        const double scale_error = 0.5 * variance_error / (variance - variance_error) + 3 * u;
        for (std::int64_t j = 0; j < columns; ++j) {
            const auto column = static_cast<std::size_t>(j);
            const double factor = double{weight[column]} / std::sqrt(variance);
            const double product = (in(j)-mean) * factor;
            const double expected = product + double{bias[column]};
            const double error = std::fabs(factor) * centred_error * (1 + scale_error) +
                                 std::fabs(product) * scale_error +
                                 examples::gamma(4, u) * (std::fabs(product) + std::fabs(double{bias[column]}));
            const double bound = error + examples::rounding_error(std::fabs(expected) + error, ElementType::bf16);
            const double result{float(y[static_cast<std::size_t>(row * columns + j)])};
            wrong += std::fabs(result - expected) <= bound ? 0 : 1;
        }
    }
    return examples::verdict("tile_layer_norm: bf16, with weight and bias", wrong, y.size());
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_with_sizes<2>("tile_layer_norm", "rows columns", argc, argv, {130, 1000}, run);
}
