// Only mma() reads shared memory.
// expect: "tessera: a tile of a stream, or one that is held, is in shared memory for mma() alone: input.load(at) has"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            for (auto [tile] : tile::stream(cta, x.row(at))) {
                y.store(at, tile * 2.0F);
            }
#else
            y.store(at, x.load(at) * 2.0F);
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
