// A warp would have half of a row of A.
// expect: "tessera: a tile in registers is multiplied by warps that have whole rows of it: hints with warps_n = 1"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr int along_n = 2;
#else
constexpr int along_n = 1;
#endif

struct Program {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, 64> b;
    tile::Output<float, 128, 64> d;
    static constexpr tile::Hints hints{.warps_m = 4, .warps_n = along_n};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 64>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                const auto weight = tile::convert<bf16>(mma(left, right, tile::zeros<float, 128, 64>(cta)));
                sum = mma(weight, right, sum);
            }
            d.store(at, sum);
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
