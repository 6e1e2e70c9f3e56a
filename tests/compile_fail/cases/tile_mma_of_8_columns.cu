// The tensor core would read what follows the tile.
// expect: "tessera: tensor cores multiply 32 bytes of each row of A at a time: tiles with a multiple of that along K"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr int k = 8;
#else
constexpr int k = 16;
#endif

struct Program {
    tile::Input<bf16, 128, k> a;
    tile::Input<bf16, k, 128> b;
    tile::Output<float, 128, 128> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, 128, 128>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, sum);
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
