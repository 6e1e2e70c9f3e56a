// TMA swizzles no lines of 24 bytes.
// expect: "tessera: a tile in shared memory has 16, 32, 64 or a multiple of 128 bytes along its contiguous side"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;
    tile::Input<bf16, 4, 12> z;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            const auto held = tile::hold(cta, z.row(at));
            y.store(at, tile::full<float, 4, 32>(cta, static_cast<float>(held.first_row())));
#else
            const auto held = tile::hold(cta, x.row(at));
            y.store(at, tile::full<float, 4, 32>(cta, static_cast<float>(held.first_row())));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
