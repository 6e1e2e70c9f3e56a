// `zip` takes its function first, `map` its tile.
// expect: "tessera: zip(function, x, y) takes the function first, then tiles"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto smaller = [](float one, float other) { return one < other ? one : other; };
#ifdef NEGATIVE
            y.store(at, tile::zip(x.load(at), x.load(at), smaller));
#else
            y.store(at, tile::zip(smaller, x.load(at), x.load(at)));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
