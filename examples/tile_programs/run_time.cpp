// d = max(scale * a * b + bias, 0), by a tile program that is compiled while this application runs: g++ or clang++ builds it, without
// nvcc. The source could come from a user; the tile is chosen here, by the size of the product.
#include <tessera/tessera.hpp>
#include <tessera/tile/program.hpp>

#include "common/exact_sum.hpp"
#include "tile_programs/sizes.hpp"

using namespace tessera;

namespace {

constexpr const char* source = R"(
using namespace tessera;

template <int M, int N, int K>
struct Layer {
    tile::Input<f16, M, K> a;
    tile::Input<f16, K, N> b;
    tile::Input<float, 1, N> bias;
    tile::Output<float, M, N> d;
    float scale;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, M, N>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::relu(sum * scale + bias.load(at)));
        }
    }
};
)";

int run(std::int64_t m, std::int64_t n, std::int64_t k)
{
    const auto a = examples::random_values<f16>(static_cast<std::size_t>(m * k), 1);
    const auto b = examples::random_values<f16>(static_cast<std::size_t>(k * n), 2);
    const auto bias = examples::random_values<float>(static_cast<std::size_t>(n), 3);
    const float scale = 0.125F;
    const Stream stream;
    const auto device_a = DeviceBuffer<f16>::from_host(stream, a);
    const auto device_b = DeviceBuffer<f16>::from_host(stream, b);
    const auto device_bias = DeviceBuffer<float>::from_host(stream, bias);
    DeviceBuffer<float> device_d(stream, static_cast<std::size_t>(m * n));

    const auto program = tile::Program::from_source(source, {.name = "layer.cu"});
    const char* const type = m * n >= 1 << 20 ? "Layer<128, 128, 64>" : "Layer<128, 64, 32>";
    const auto layer = program.kernel(type);
    std::printf("%s: %s in %.3f s\n", type, layer.code().from_cache ? "read from the cache" : "compiled",
                layer.code().seconds);
    layer.launch(stream, device_a.matrix(m, k), device_b.matrix(k, n), device_bias.matrix(1, n), device_d.matrix(m, n),
                 scale);

    const auto d = device_d.to_vector();
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < m * n; ++i) {
        examples::ExactSum sum;
        for (std::int64_t l = 0; l < k; ++l) {
            sum.add(double{scale} * double{float(a[static_cast<std::size_t>(i / n * k + l)])} *
                    double{float(b[static_cast<std::size_t>(l * n + i % n)])});
        }
        sum.add(double{bias[static_cast<std::size_t>(i % n)]});
        const double result = double{d[static_cast<std::size_t>(i)]};
        wrong += sum.allows(result, ElementType::f32, Activation::relu) ? 0 : 1;
    }
    return examples::verdict("tile_run_time: d = max(scale * a * b + bias, 0) in f16", wrong, d.size());
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_with_sizes<3>("tile_run_time", "m n k", argc, argv, {200, 264, 200}, run);
}
