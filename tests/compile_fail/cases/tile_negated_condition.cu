// `!` would make one value of many.
// expect: "and condition == false negates one"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto values = x.load(at);
            const auto positive = values > 0;
#ifdef NEGATIVE
            y.store(at, tile::where(!positive, values, 0.0F));
#else
            y.store(at, tile::where(positive == false, values, 0.0F));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
