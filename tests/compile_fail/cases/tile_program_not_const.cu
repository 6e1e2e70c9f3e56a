// A program is the same for all CTAs.
// expect: "tessera: a tile program has TESSERA_TILE void operator()(auto cta) const"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

#ifdef NEGATIVE
    TESSERA_TILE void operator()(auto cta)
#else
    TESSERA_TILE void operator()(auto cta) const
#endif
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
