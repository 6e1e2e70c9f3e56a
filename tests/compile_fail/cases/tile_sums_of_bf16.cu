// Rounding after each step would lose most of the sum.
// expect: "tessera: products are added up in float"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Element = bf16;
#else
using Element = float;
#endif

struct Program {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, 128> b;
    tile::Output<float, 128, 128> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<Element, 128, 128>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, sum);
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
