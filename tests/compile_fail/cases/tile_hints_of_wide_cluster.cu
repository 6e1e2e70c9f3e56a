// A cluster is a whole number of rows of CTAs.
// expect: "tessera: hints have cluster_columns that divide the CTAs of a cluster"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
#ifdef NEGATIVE
    static constexpr tile::Hints hints{.cluster = 2, .cluster_columns = 4};
#else
    static constexpr tile::Hints hints{.cluster = 4, .cluster_columns = 2};
#endif

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
