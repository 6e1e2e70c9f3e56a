// Two warpgroups on Hopper have 128 rows.
// architecture: "compute_90a"
// expect: "tessera: the rows of a tile of sums must be a multiple of 16 for each warp along them; the program's"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr int groups = 2;
#else
constexpr int groups = 1;
#endif

struct Program {
    tile::Input<bf16, 64, 64> a;
    tile::Input<bf16, 64, 128> b;
    tile::Output<float, 64, 128> d;
    static constexpr tile::Hints hints{.warpgroups = groups};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 64, 128>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, sum);
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
