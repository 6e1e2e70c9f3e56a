// d = residual + gelu(a * b + bias): an epilogue of your own is arithmetic with the tile of sums.
#include <tessera/tessera.hpp>
#include <tessera/tile.cuh>

#include "common/exact_sum.hpp"
#include "tile_programs/sizes.hpp"

using namespace tessera;

namespace {

struct GemmEpilogue {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, 128> b;
    tile::Input<float, 1, 128> bias;
    tile::Input<bf16, 128, 128> residual;
    tile::Output<bf16, 128, 128> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 128>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<bf16>(tile::convert<float>(residual.load(at)) +
                                            tile::gelu_tanh(sum + bias.load(at))));
        }
    }
};

int run(std::int64_t m, std::int64_t n, std::int64_t k)
{
    const auto a = examples::random_values<bf16>(static_cast<std::size_t>(m * k), 1);
    const auto b = examples::random_values<bf16>(static_cast<std::size_t>(k * n), 2);
    const auto bias = examples::random_values<float>(static_cast<std::size_t>(n), 3);
    const auto residual = examples::random_values<bf16>(static_cast<std::size_t>(m * n), 4);
    const Stream stream;
    const auto device_a = DeviceBuffer<bf16>::from_host(stream, a);
    const auto device_b = DeviceBuffer<bf16>::from_host(stream, b);
    const auto device_bias = DeviceBuffer<float>::from_host(stream, bias);
    const auto device_residual = DeviceBuffer<bf16>::from_host(stream, residual);
    DeviceBuffer<bf16> device_d(stream, residual.size());
    tile::launch(stream, GemmEpilogue{device_a.matrix(m, k), device_b.matrix(k, n), device_bias.matrix(1, n),
                                      device_residual.matrix(m, n), device_d.matrix(m, n)});

    const auto d = device_d.to_vector();
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < m * n; ++i) {
        const auto element = static_cast<std::size_t>(i);
        double sum{bias[static_cast<std::size_t>(i % n)]}, magnitude = std::fabs(sum);
        for (std::int64_t l = 0; l < k; ++l) {
            const double term = double{float(a[static_cast<std::size_t>(i / n * k + l)])} *
                                double{float(b[static_cast<std::size_t>(l * n + i % n)])};
            sum += term;
            magnitude += std::fabs(term);
        }
        // tile::gelu_tanh has the bits of the library's, which activation_error bounds.
        const double sum_error = examples::gamma(double(k) + 1, 2 * examples::f32_roundoff) * magnitude;
        const double activation_error = examples::activation_error(sum, sum_error, Activation::gelu_tanh);
        const double expected = double{float(residual[element])} + examples::activate(sum, Activation::gelu_tanh);
        const double error = activation_error + examples::f32_roundoff * (std::fabs(expected) + activation_error);
        const double bound = error + examples::rounding_error(std::fabs(expected) + error, ElementType::bf16);
        wrong += std::fabs(double{float(d[element])} - expected) <= bound ? 0 : 1;
    }
    return examples::verdict("tile_gemm_epilogue: d = residual + gelu(a * b + bias)", wrong, d.size());
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_with_sizes<3>("tile_gemm_epilogue", "m n k", argc, argv, {200, 136, 200}, run);
}
