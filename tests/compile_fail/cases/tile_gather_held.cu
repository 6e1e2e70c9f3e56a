// TMA, which fills held tiles, does not gather.
// expect: "tessera: rows that a vector names are loaded or streamed, not held"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Input<float, 4, 32, ColumnMajor> across;
    tile::Numbers<int> rows;
    tile::Numbers<float> weights;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
#ifdef NEGATIVE
            const auto held = tile::hold(cta, tile::gather(x, rows), at);
            y.store(at, tile::full<float, 4, 32>(cta, static_cast<float>(held.first_column())));
#else
            y.store(at, tile::gather(x, rows).load(at));
#endif
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
