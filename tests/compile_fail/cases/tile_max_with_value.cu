// A tile and one value.
// expect: "tessera: max and min take two tiles: full_like(tile, value) is one of a single value"
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
            y.store(at, tile::max(values, 0.0F));
#else
            y.store(at, tile::max(values, tile::full_like(values, 0.0F)));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
