// Sums keep their shape.
// expect: "tessera: a tile is replaced by one of its shape: give another shape a new name"
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
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
#ifdef NEGATIVE
                sum = tile::row_maxima(mma(left, right, sum));
#else
                sum = mma(left, right, sum);
#endif
            }
            d.store(at, sum);
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
