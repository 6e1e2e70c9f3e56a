// Its bits would be read as other numbers.
// expect: "tessera: the matrix has other elements than its input or output: name its type, Input<T, Rows, Columns>"
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
using View = MatrixView<const bf16>;
#else
using View = MatrixView<const float>;
#endif

void run(StreamRef stream, View x, MatrixView<float> y) { tile::launch(stream, Program{x, y}); }
