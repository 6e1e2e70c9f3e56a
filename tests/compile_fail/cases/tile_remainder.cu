// Not every operator is one of tiles.
// expect: "tessera: tiles have no operator %: conditions are combined by && and ||, and map() and zip() have all"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            const auto column = tile::iota_columns(x.load(at));
#ifdef NEGATIVE
            const auto odd = column % 2;
            y.store(at, tile::convert<float>(odd));
#else
            const auto odd = tile::map(column, [](int value) { return value % 2; });
            y.store(at, tile::convert<float>(odd));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
