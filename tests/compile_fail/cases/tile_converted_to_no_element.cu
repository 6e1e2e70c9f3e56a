// A tile of strings has no meaning to a GPU.
// expect: "tessera: a tile has elements of f16, bf16, tf32, f8e4m3, f8e5m2 or a type of C++ for numbers"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            y.store(at, tile::convert<std::source_location>(x.load(at)));
#else
            y.store(at, tile::convert<float>(x.load(at)));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
