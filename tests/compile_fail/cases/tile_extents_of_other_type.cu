// Extents are a type of their own.
// expect: "tessera: the last parameter of an input or output is Extents<rows, columns> of its matrix"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Known = int;
#else
using Known = tile::Extents<4096, tile::any_extent>;
#endif

struct Program {
    tile::Input<float, 4, 32, RowMajor, Known> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
