// d = a * b on the tensor cores: bf16 operands, float32 sums, bf16 results. The same program uses tcgen05 and
// tensor memory on Blackwell, wgmma on Hopper, and mma.sync elsewhere.
#include <tessera/tessera.hpp>
#include <tessera/tile.cuh>

#include "common/exact_sum.hpp"
#include "tile_programs/sizes.hpp"

using namespace tessera;

namespace {

struct TileGemm {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, 128> b;
    tile::Output<bf16, 128, 128> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 128>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<bf16>(sum));
        }
    }
};

int run(std::int64_t m, std::int64_t n, std::int64_t k)
{
    const auto a = examples::random_values<bf16>(static_cast<std::size_t>(m * k), 1);
    const auto b = examples::random_values<bf16>(static_cast<std::size_t>(k * n), 2);
    const Stream stream;
    const auto device_a = DeviceBuffer<bf16>::from_host(stream, a);
    const auto device_b = DeviceBuffer<bf16>::from_host(stream, b);
    DeviceBuffer<bf16> device_d(stream, static_cast<std::size_t>(m * n));
    tile::launch(stream, TileGemm{device_a.matrix(m, k), device_b.matrix(k, n), device_d.matrix(m, n)});

    const auto d = device_d.to_vector();
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < m * n; ++i) {
        examples::ExactSum sum;
        for (std::int64_t l = 0; l < k; ++l) {
            sum.add(double{float(a[static_cast<std::size_t>(i / n * k + l)])} *
                    double{float(b[static_cast<std::size_t>(l * n + i % n)])});
        }
        wrong += sum.allows(double{float(d[static_cast<std::size_t>(i)])}, ElementType::bf16) ? 0 : 1;
    }
    return examples::verdict("tile_gemm: d = a * b in bf16", wrong, d.size());
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_with_sizes<3>("tile_gemm", "m n k", argc, argv, {200, 264, 200}, run);
}
