// Two elements become one.
// expect: "tessera: what combines the elements of rows or columns takes two of them"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            const auto combine = [](float one) { return one; };
            y.store(at, x.load(at) - tile::reduce_rows(x.load(at), combine, 0.0F));
#else
            const auto combine = [](float one, float other) { return one + other; };
            y.store(at, x.load(at) - tile::reduce_rows(x.load(at), combine, 0.0F));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
