// A program for an empty matrix would do nothing.
// expect: "tessera: extents that a program is compiled for are 1 or more, or any_extent"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Known = tile::Extents<0, 4096>;
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
