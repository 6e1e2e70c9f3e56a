// Tensor cores have no float.
// expect: "tessera: tensor cores do not multiply float: read the input as tf32, or store it as bf16 or f16"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Element = float;
#else
using Element = tf32;
#endif

struct Program {
    tile::Input<Element, 128, 32> a;
    tile::Input<Element, 32, 128, ColumnMajor> b;
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
