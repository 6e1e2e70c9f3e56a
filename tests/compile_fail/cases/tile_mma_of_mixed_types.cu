// No instruction multiplies them.
// expect: "tessera: tensor cores multiply elements of one type; only f8e4m3 and f8e5m2 may be mixed"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Element = f16;
#else
using Element = bf16;
#endif

struct Program {
    tile::Input<bf16, 128, 64> a;
    tile::Input<Element, 64, 128> b;
    tile::Output<float, 128, 128> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 128>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, sum);
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
