// The number of threads is part of the code.
// expect: "tessera: a program's hints are static constexpr tile::Hints hints"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
#ifdef NEGATIVE
    tile::Hints hints{.warps_m = 2};
#else
    static constexpr tile::Hints hints{.warps_m = 2};
#endif

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
