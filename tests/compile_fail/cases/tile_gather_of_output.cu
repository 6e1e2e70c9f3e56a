// An output is only written.
// expect: "tessera: gather(input, numbers) takes rows of an Input that tile::Numbers name"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Input<float, 4, 32, ColumnMajor> across;
    tile::Numbers<int> rows;
    tile::Numbers<float> weights;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, tile::gather(y, rows).load(at));
#else
            y.store(at, tile::gather(x, rows).load(at));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
