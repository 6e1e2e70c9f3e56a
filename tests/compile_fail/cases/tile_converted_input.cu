// An input is a whole matrix; a tile of it is at a place.
// expect: "tessera: convert takes a tile: an input's is input.load(at)"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<bf16, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, tile::convert<float>(x));
#else
            y.store(at, tile::convert<float>(x.load(at)));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
