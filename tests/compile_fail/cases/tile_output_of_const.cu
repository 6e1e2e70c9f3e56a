// The output would be written through it.
// expect: "tessera: an output cannot be a view of const elements: take the view from a buffer that is not const"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

#ifdef NEGATIVE
using View = MatrixView<const float>;
#else
using View = MatrixView<float>;
#endif

void run(StreamRef stream, MatrixView<const float> x, View y) { tile::launch(stream, Program{x, y}); }
