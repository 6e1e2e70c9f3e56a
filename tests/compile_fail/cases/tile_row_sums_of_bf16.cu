// Sums of bf16 are float, which the result could not hold.
// expect: "tessera: elements that are combined give another of their type: convert<float>() narrow ones first"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<bf16, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, x.load(at) - tile::row_sums(x.load(at)));
#else
            y.store(at, x.load(at) - tile::row_sums(tile::convert<float>(x.load(at))));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
