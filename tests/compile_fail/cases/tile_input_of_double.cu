// Tensor cores and Tessera have no double.
// expect: "tessera: an input or output has elements of type f32, f16, bf16, tf32, f8e4m3 or f8e5m2"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Element = double;
#else
using Element = bf16;
#endif

struct Program {
    tile::Input<Element, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, tile::convert<float>(x.load(at)));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
