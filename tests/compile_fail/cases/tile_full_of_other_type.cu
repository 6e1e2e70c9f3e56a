// A bf16 is not rounded from a float silently.
// expect: "tessera: full<T>() takes a value of type T, and narrows none: T(value)"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<bf16, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, tile::full<bf16, 4, 32>(cta, 1.0F));
#else
            y.store(at, tile::full<bf16, 4, 32>(cta, bf16(1.0F)));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
