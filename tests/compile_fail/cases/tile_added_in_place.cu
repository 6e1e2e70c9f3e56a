// The sum of two tiles may have another type than the first.
// expect: "tessera: tiles have no operator +=: write x = x + y"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            auto values = x.load(at);
#ifdef NEGATIVE
            values += values;
            y.store(at, values);
#else
            values = values + values;
            y.store(at, values);
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
