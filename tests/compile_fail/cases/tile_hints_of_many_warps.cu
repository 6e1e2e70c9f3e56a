// A CTA has at most 1024 threads.
// expect: "tessera: a program's CTA computes with 32 to 992 threads: its hints give 32 * warps_m * warps_n, and on"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
#ifdef NEGATIVE
    static constexpr tile::Hints hints{.warps_m = 8, .warps_n = 4};
#else
    static constexpr tile::Hints hints{.warps_m = 8, .warps_n = 2};
#endif

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
