// Only places say which elements a tile has.
// expect: "tessera: atomic_add(output, at, tile) adds a tile to an Output at a place, one of tiles(cta)"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
    tile::Output<float, 4, 1> sums;
    tile::Output<bf16, 4, 32> narrow;
    tile::Output<float, 8, 32> eight;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            tile::atomic_add(y, 0, x.load(at));
#else
            tile::atomic_add(sums, at, tile::row_sums(x.load(at)));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
