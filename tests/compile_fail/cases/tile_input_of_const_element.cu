// Inputs are only read: their elements need no const.
// expect: "tessera: the element type of an input or output has no const: Input<bf16, 128, 64>"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Element = const float;
#else
using Element = float;
#endif

struct Program {
    tile::Input<Element, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
