// Sums are float.
// expect: "tessera: a tile in registers is multiplied as f16 or bf16, and B has the same type: convert<>() it"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, 64> b;
    tile::Output<float, 128, 64> d;
    static constexpr tile::Hints hints{.warps_m = 8, .warps_n = 1};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 64>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                const auto weight = mma(left, right, tile::zeros<float, 128, 64>(cta));
#ifdef NEGATIVE
                sum = mma(weight, right, sum);
#else
                sum = mma(tile::convert<bf16>(weight), right, sum);
#endif
            }
            d.store(at, sum);
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
