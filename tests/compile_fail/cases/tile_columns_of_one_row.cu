// Each column has one value already.
// expect: "tessera: a tile with one row has nothing to reduce along its columns"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 1, 1024> x;
    tile::Output<float, 1, 1024> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, tile::column_sums(x.load(at)));
#else
            y.store(at, x.load(at));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
