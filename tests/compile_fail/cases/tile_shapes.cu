// Which rows should meet?
// expect: "tessera: the shapes of these tiles do not fit each other: rows must be equal or 1, and columns too"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, x.load(at) * tile::full<float, 2, 32>(cta, 2.0F));
#else
            y.store(at, x.load(at) * tile::full<float, 4, 1>(cta, 2.0F));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
