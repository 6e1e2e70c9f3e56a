// y = a * x + y. A vector is a matrix with one row: each tile has 2048 elements of it.
#include <tessera/tessera.hpp>
#include <tessera/tile.cuh>

#include "common/exact_sum.hpp"
#include "tile_programs/sizes.hpp"

using namespace tessera;

namespace {

struct Saxpy {
    float a;
    tile::Input<float, 1, 2048> x;
    tile::Input<float, 1, 2048> y;
    tile::Output<float, 1, 2048> result;  // may be y: a tile is loaded before it is stored

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : result.tiles(cta)) {
            result.store(at, a * x.load(at) + y.load(at));
        }
    }
};

int run(std::int64_t n)
{
    const auto count = static_cast<std::size_t>(n);
    const auto x = examples::random_values<float>(count, 1), y = examples::random_values<float>(count, 2);
    const Stream stream;
    const auto device_x = DeviceBuffer<float>::from_host(stream, x);
    auto device_y = DeviceBuffer<float>::from_host(stream, y);
    const float a = 1.7F;
    const auto vector = device_y.matrix(1, n);
    tile::launch(stream, Saxpy{a, device_x.matrix(1, n), vector, vector});

    const auto result = device_y.to_vector();
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < count; ++i) {
        const double product = double{a} * double{x[i]};
        const double bound =
            examples::gamma(2, examples::f32_roundoff) * (std::fabs(product) + std::fabs(double{y[i]}));
        wrong += std::fabs(double{result[i]} - (product + double{y[i]})) <= bound ? 0 : 1;
    }
    return examples::verdict("tile_saxpy: y = a * x + y", wrong, count);
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_with_sizes<1>("tile_saxpy", "n", argc, argv, {100'003}, run);  // no multiple of anything
}
