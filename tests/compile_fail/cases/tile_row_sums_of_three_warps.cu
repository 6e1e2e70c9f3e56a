// A row would be in other warps than the one before.
// expect: "tessera: rows and columns are combined by a power of two of warps: hints with other warps_m, warps_n or"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr int warps = 3;
#else
constexpr int warps = 4;
#endif

struct Program {
    tile::Input<float, 4, 512> x;
    tile::Output<float, 4, 512> y;
    static constexpr tile::Hints hints{.warps_m = warps, .warps_n = 1};

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at) - tile::row_sums(x.load(at)));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
