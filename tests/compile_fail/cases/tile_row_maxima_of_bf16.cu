// Maxima are compared in float.
// expect: "tessera: row_maxima compares float: convert<float>() the tile"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<bf16, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, x.load(at) - tile::row_maxima(x.load(at)));
#else
            y.store(at, x.load(at) - tile::row_maxima(tile::convert<float>(x.load(at))));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
