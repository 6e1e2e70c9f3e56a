// `map` has one element for a function of two.
// expect: "tessera: the function of map() or zip() takes one element of each tile, in their order"
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
            y.store(at, tile::map(x.load(at), smaller));
#else
            y.store(at, tile::zip(smaller, x.load(at), x.load(at)));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
