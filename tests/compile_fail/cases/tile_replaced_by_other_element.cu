// A tile keeps its element type, and the sum of two bf16 is float.
// expect: "tessera: a tile is replaced by one of its element type: convert<>() it, or give it a new name"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<bf16, 4, 32> x;
    tile::Output<bf16, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            auto values = x.load(at);
#ifdef NEGATIVE
            values = values + values;
            y.store(at, values);
#else
            values = tile::convert<bf16>(values + values);
            y.store(at, values);
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
