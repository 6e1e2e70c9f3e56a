// A held tile is beside its place.
// expect: "tessera: a tile that is held at a place has the rows and columns of the output's tiles: hold(cta, input.row(at)) takes the one tile of a band"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
    tile::Input<float, 8, 32> z;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            const auto held = tile::hold(cta, z, at);
            y.store(at, tile::full<float, 4, 32>(cta, static_cast<float>(held.first_row())));
#else
            const auto held = tile::hold(cta, x, at);
            y.store(at, tile::full<float, 4, 32>(cta, static_cast<float>(held.first_row())));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
