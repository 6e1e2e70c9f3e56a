// out = in'. A program goes through the tiles of its output; `transposed()` says where the input's tile is.
#include <tessera/tessera.hpp>
#include <tessera/tile.cuh>

#include "common/exact_sum.hpp"
#include "tile_programs/sizes.hpp"

using namespace tessera;

namespace {

struct Transpose {
    tile::Input<float, 32, 64> in;
    tile::Output<float, 64, 32> out;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : out.tiles(cta)) {
            out.store(at, tile::transpose(in.load(at.transposed())));
        }
    }
};

int run(std::int64_t rows, std::int64_t columns)
{
    const auto matrix = examples::random_values<float>(static_cast<std::size_t>(rows * columns), 1);
    const Stream stream;
    const auto in = DeviceBuffer<float>::from_host(stream, matrix);
    DeviceBuffer<float> out(stream, matrix.size());
    tile::launch(stream, Transpose{in.matrix(rows, columns), out.matrix(columns, rows)});

    const auto result = out.to_vector();
    std::size_t wrong = 0;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
        const auto source = static_cast<std::size_t>(i % rows * columns + i / rows);
        wrong += result[static_cast<std::size_t>(i)] == matrix[source] ? 0 : 1;
    }
    return examples::verdict("tile_transpose: out = in'", wrong, result.size());
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_with_sizes<2>("tile_transpose", "rows columns", argc, argv, {300, 217}, run);
}
