// Neither vector says how the threads share a whole tile.
// expect: "tessera: a column and a row make no tile: broadcast<Rows, Columns>() one of them first"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto rows = tile::row_sums(x.load(at));
            const auto columns = tile::column_sums(x.load(at));
#ifdef NEGATIVE
            y.store(at, rows + columns);
#else
            y.store(at, tile::broadcast<4, 32>(rows) + columns);
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
