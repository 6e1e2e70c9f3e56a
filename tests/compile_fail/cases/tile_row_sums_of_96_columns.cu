// A row would begin in the middle of a warp.
// expect: "tessera: rows and columns are combined in tiles of one row, or of a power of two of columns"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr int columns = 96;
#else
constexpr int columns = 128;
#endif

struct Program {
    tile::Input<float, 4, columns> x;
    tile::Output<float, 4, columns> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at) - tile::row_sums(x.load(at)));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
