// The numbers are counted as the rows of the output are.
// expect: "tessera: rows that a vector names are loaded at a place of the input's shape: its tiles have other rows or columns than the output's"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 8, 32> eight;
    tile::Input<float, 4, 32> x;
    tile::Input<float, 4, 32, ColumnMajor> across;
    tile::Numbers<int> rows;
    tile::Numbers<float> weights;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, tile::row_sums(tile::gather(eight, rows).load(at)));
#else
            y.store(at, tile::gather(x, rows).load(at));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
