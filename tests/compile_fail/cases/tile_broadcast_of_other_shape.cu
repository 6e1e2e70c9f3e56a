// A vector of 4 rows has none for the other 4.
// expect: "tessera: a vector that is broadcast has the rows or the columns of the result, and 1 of the other"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto rows = tile::row_sums(x.load(at));
#ifdef NEGATIVE
            y.store(at, tile::broadcast<8, 32>(rows));
#else
            y.store(at, tile::broadcast<4, 32>(rows));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
