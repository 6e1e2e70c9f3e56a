// Chapter 10: the same in a tile program.
#include <tessera/tile.cuh>

#include "course/course.hpp"

using namespace tessera;

// [program]
/// D = relu(A * B^T + bias).
struct ReluGemm {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, 128, ColumnMajor> b;
    tile::Input<float, 1, 128> bias;
    tile::Output<float, 128, 128> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 128>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::relu(sum + bias.load(at)));
        }
    }
};
// [end]

// [main]
int main()
{
    std::vector<float> bias(256);
    for (std::size_t j = 0; j < bias.size(); ++j) {
        bias[j] = static_cast<float>(j % 16) - 8.0F;
    }
    return course::multiply_and_check(
        "tile_program", 256, 256, 256,
        [&](course::Product& p) {
            const auto device_bias = DeviceBuffer<float>::from_host(p.stream, bias);
            const auto report =
                tile::launch(p.stream, ReluGemm{p.a(), p.b().transposed(), device_bias.matrix(1, 256), p.d()});
            std::printf("instructions: %s, pairs: %s, stages: %u\n",
                        report.instructions == tile::Instructions::tcgen05 ? "tcgen05" : "others",
                        report.pairs ? "yes" : "no", static_cast<unsigned>(report.stages));
        },
        [&](float sum, std::size_t column) { return std::fmax(sum + bias[column], 0.0F); });
}
// [end]
