// The output says how the work is divided.
// expect: "tessera: an input does not divide the work between CTAs, its output does: output.tiles(cta)"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
#ifdef NEGATIVE
        for (auto at : x.tiles(cta)) {
#else
        for (auto at : y.tiles(cta)) {
#endif
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
