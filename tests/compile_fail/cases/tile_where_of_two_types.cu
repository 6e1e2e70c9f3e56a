// The result would have two element types.
// expect: "tessera: where chooses between elements of one type: convert<> one of the tiles"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<bf16, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto values = tile::convert<float>(x.load(at));
#ifdef NEGATIVE
            y.store(at, tile::where(values > 0, values, x.load(at)));
#else
            y.store(at, tile::where(values > 0, values, tile::convert<float>(x.load(at))));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
