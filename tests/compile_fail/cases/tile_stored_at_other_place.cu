// A place of tiles of another shape is not one of this output.
// expect: "tessera: a tile is stored at a place of its output's shape: others belong to other CTAs"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
    tile::Output<float, 2, 32> z;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            z.store(at, x.load(at));
#else
            y.store(at, x.load(at));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
