// Four warps have neighbouring rows: two would be left.
// expect: "tessera: hints have 1, 2, 3 or a multiple of 4 warps_m"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
#ifdef NEGATIVE
    static constexpr tile::Hints hints{.warps_m = 6};
#else
    static constexpr tile::Hints hints{.warps_m = 8};
#endif

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
