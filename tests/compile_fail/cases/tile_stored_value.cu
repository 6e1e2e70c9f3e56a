// A value has no shape.
// expect: "tessera: what is stored is a tile: full<T, Rows, Columns>(cta, value) is one of a single value"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, 0.0F);
#else
            y.store(at, tile::full<float, 4, 32>(cta, 0.0F));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
