// Clusters are powers of two.
// expect: "tessera: hints have clusters of 1, 2, 4 or 8 CTAs, or 0 for the library's choice"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
#ifdef NEGATIVE
    static constexpr tile::Hints hints{.cluster = 3};
#else
    static constexpr tile::Hints hints{.cluster = 2};
#endif

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
