// The condition is one value, which `?:` takes.
// expect: "tessera: the condition of where is a tile, as comparisons of tiles are"
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
            y.store(at, tile::where(at.first_row() > 0, values, 0.0F));
#else
            y.store(at, tile::where(values > 0, values, 0.0F));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
