// Functions compute in float.
// expect: "tessera: functions of tiles compute in float: convert<float>() the tile first"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<bf16, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, tile::exp(x.load(at)));
#else
            y.store(at, tile::exp(tile::convert<float>(x.load(at))));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
