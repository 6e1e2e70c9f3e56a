// The place has 4 rows.
// expect: "tessera: an input is loaded at a place of its own shape: the input's tiles have other rows or columns"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 8, 32> x;
    tile::Output<float, 4, 32> y;
    tile::Input<float, 4, 32> z;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, x.load(at));
#else
            y.store(at, z.load(at));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
