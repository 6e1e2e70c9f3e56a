// SwiGLU, the first half of a gated MLP: d = silu(x * gate) * (x * up). One stream of three bands loads each tile of x
// once for both products.
#include <tessera/tessera.hpp>
#include <tessera/tile.cuh>

#include "common/exact_sum.hpp"
#include "tile_programs/sizes.hpp"

using namespace tessera;

namespace {

struct GatedMlp {
    tile::Input<bf16, 128, 64> x;
    tile::Input<bf16, 64, 64> gate;
    tile::Input<bf16, 64, 64> up;
    tile::Output<bf16, 128, 64> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto gates = tile::zeros<float, 128, 64>(cta);
            auto values = tile::zeros<float, 128, 64>(cta);
            for (auto [rows, to_gates, to_values] : tile::stream(cta, x.row(at), gate.column(at), up.column(at))) {
                gates = mma(rows, to_gates, gates);
                values = mma(rows, to_values, values);
            }
            d.store(at, tile::convert<bf16>(tile::silu(gates) * values));
        }
    }
};

/// A product in float64, and the largest error of one in float32.
struct Product {
    double value = 0.0;
    double magnitude = 0.0;
    double error(std::int64_t k) const { return examples::gamma(double(k), 2 * examples::f32_roundoff) * magnitude; }
    void add(double term)
    {
        value += term;
        magnitude += std::fabs(term);
    }
};

int run(std::int64_t tokens, std::int64_t hidden, std::int64_t features)
{
    const auto count = [](std::int64_t rows, std::int64_t columns) { return static_cast<std::size_t>(rows * columns); };
    const auto x = examples::random_values<bf16>(count(tokens, features), 1);
    const auto gate = examples::random_values<bf16>(count(features, hidden), 2);
    const auto up = examples::random_values<bf16>(count(features, hidden), 3);
    const Stream stream;
    const auto device_x = DeviceBuffer<bf16>::from_host(stream, x);
    const auto device_gate = DeviceBuffer<bf16>::from_host(stream, gate);
    const auto device_up = DeviceBuffer<bf16>::from_host(stream, up);
    DeviceBuffer<bf16> device_d(stream, count(tokens, hidden));
    tile::launch(stream, GatedMlp{device_x.matrix(tokens, features), device_gate.matrix(features, hidden),
                                  device_up.matrix(features, hidden), device_d.matrix(tokens, hidden)});

    const auto d = device_d.to_vector();
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < tokens * hidden; ++i) {
        Product gates, values;
        for (std::int64_t l = 0; l < features; ++l) {
            const double left{float(x[static_cast<std::size_t>(i / hidden * features + l)])};
            const auto right = static_cast<std::size_t>(l * hidden + i % hidden);
            gates.add(left * double{float(gate[right])});
            values.add(left * double{float(up[right])});
        }
        const double silu = examples::activate(gates.value, Activation::silu);
        const double values_error = values.error(features);
        // A tile's exp has an error of |x| ulp more than expf, its quotient one of 2 ulp.
        const double silu_error = examples::activation_error(gates.value, gates.error(features), Activation::silu) +
                                  (2 * std::fabs(gates.value) + 4) * examples::f32_roundoff * std::fabs(silu);
        const double expected = silu * values.value;
        const double error = (std::fabs(silu) + silu_error) * values_error + silu_error * std::fabs(values.value) +
                             2 * examples::f32_roundoff * std::fabs(expected);
        const double bound = error + examples::rounding_error(std::fabs(expected) + error, ElementType::bf16);
        wrong += std::fabs(double{float(d[static_cast<std::size_t>(i)])} - expected) <= bound ? 0 : 1;
    }
    return examples::verdict("tile_gated_mlp: d = silu(x * gate) * (x * up)", wrong, d.size());
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_with_sizes<3>("tile_gated_mlp", "tokens hidden features", argc, argv, {200, 136, 200}, run);
}
