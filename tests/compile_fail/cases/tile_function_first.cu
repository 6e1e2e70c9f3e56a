// `zip` takes its function first, `map` its tile.
// expect: "tessera: map(tile, function) takes the tile first"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, tile::map([](float value) { return 2 * value; }, x.load(at)));
#else
            y.store(at, tile::map(x.load(at), [](float value) { return 2 * value; }));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
