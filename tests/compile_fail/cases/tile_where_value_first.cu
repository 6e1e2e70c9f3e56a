// Only the last argument may be one value.
// expect: "tessera: where takes one value as its last argument: where(condition, x, value)"
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
            y.store(at, tile::where(values > 0, 0.0F, values));
#else
            y.store(at, tile::where(values <= 0, values, 0.0F));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
