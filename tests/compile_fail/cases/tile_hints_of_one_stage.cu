// The next step is loaded while one is read.
// expect: "tessera: hints have 2 to 8 stages, or 0 for as many as fit into shared memory"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
#ifdef NEGATIVE
    static constexpr tile::Hints hints{.stages = 1};
#else
    static constexpr tile::Hints hints{.stages = 2};
#endif

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
