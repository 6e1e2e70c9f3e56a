// The rest of the tile would be another place.
// expect: "tessera: the tile that is stored has other rows or columns than the output's tiles"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto values = x.load(at);
#ifdef NEGATIVE
            y.store(at, tile::row_sums(values));
#else
            y.store(at, values - tile::row_sums(values));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
