// A vector on the heap is of no use on the GPU.
// expect: "tessera: a tile program is copied to the GPU: its members are inputs, outputs and plain values"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Values = std::vector<float>;
#else
using Values = float;
#endif

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
    Values values;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
