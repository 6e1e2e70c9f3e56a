// An input is a whole matrix; a tile of it is at a place.
// expect: "tessera: a tile computes with tiles and numbers: an input's tile is input.load(at)"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
    tile::Input<float, 1, 32> bias;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, x.load(at) + bias);
#else
            y.store(at, x.load(at) + bias.load(at));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
