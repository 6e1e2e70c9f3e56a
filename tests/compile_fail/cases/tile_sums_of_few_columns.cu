// Each of two warps multiplies 16 columns.
// expect: "tessera: a warp multiplies 16 columns at a time: fewer warps_n, or wider tiles"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr int n = 16;
#else
constexpr int n = 32;
#endif

struct Program {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, n> b;
    tile::Output<float, 128, n> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, n>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, sum);
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
