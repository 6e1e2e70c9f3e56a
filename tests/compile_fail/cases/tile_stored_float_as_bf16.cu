// Narrowing is written down.
// expect: "tessera: the tile's elements are not the output's: convert<>() it first"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<bf16, 4, 32> x;
    tile::Output<bf16, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto values = x.load(at);
#ifdef NEGATIVE
            y.store(at, values + values);
#else
            y.store(at, tile::convert<bf16>(values + values));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
