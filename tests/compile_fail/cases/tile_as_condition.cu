// Some elements are positive, and others are not.
// expect: "tessera: a tile has many values and is no condition: where(condition, x, y) chooses for each element"
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
            if (values > 0) {
                y.store(at, values);
            }
#else
            y.store(at, tile::where(values > 0, values, 0.0F));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
