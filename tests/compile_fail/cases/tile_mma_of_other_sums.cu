// The sums would be of other rows.
// expect: "tessera: the sums have other rows than A, or other columns than B: zeros<float, M, N>(cta) of the product"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr int m = 256;
#else
constexpr int m = 128;
#endif

struct Program {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, 128> b;
    tile::Output<float, 128, 128> d;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : d.tiles(cta)) {
            auto sum = tile::zeros<float, m, 128>(cta);
            for (auto [left, right] : tile::stream(cta, a.row(at), b.column(at))) {
                sum = mma(left, right, sum);
            }
            d.store(at, tile::convert<float>(sum));
        }
    }
};

void run(StreamRef stream, const Program& program) { tile::launch(stream, program); }
