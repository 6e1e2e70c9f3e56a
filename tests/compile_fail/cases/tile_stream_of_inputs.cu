// The stream would not know which tiles of the inputs to go through.
// expect: "tessera: a stream goes through bands of inputs: input.row(at) and input.column(at)"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, 128> b;
    tile::Output<float, 128, 128> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 128>(cta);
#ifdef NEGATIVE
            for (auto [left, right] : tile::stream(cta, a, b)) {
#else
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
#endif
                sum = mma(left, right, sum);
            }
            d.store(at, sum);
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
