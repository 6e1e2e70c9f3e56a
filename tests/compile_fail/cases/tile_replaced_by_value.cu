// A value has no shape.
// expect: "tessera: a tile is replaced by a tile: full_like(tile, value) is one of a single value"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            auto values = x.load(at);
#ifdef NEGATIVE
            values = 0.0F;
            y.store(at, values);
#else
            values = tile::full_like(values, 0.0F);
            y.store(at, values);
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
