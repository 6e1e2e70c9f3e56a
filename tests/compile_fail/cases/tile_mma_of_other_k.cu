// Columns of A would meet no rows of B.
// expect: "tessera: A has other columns than B has rows: A*B needs them equal"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr int k = 32;
#else
constexpr int k = 64;
#endif

struct Program {
    tile::Input<bf16, 128, 64> a;
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
