// No thread has the address of an element: it may be in the registers of another.
// expect: "tessera: a tile's elements are spread over threads and have no addresses"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto values = x.load(at);
#ifdef NEGATIVE
            y.store(at, values * values(0, 0));
#else
            y.store(at, values * 2.0F);
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
