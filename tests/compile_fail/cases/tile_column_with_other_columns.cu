// The band would be above another place.
// expect: "tessera: the columns of an input's tile and of the output's must be equal: the band would be another's"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr int n = 64;
#else
constexpr int n = 128;
#endif

struct Program {
    tile::Input<bf16, 128, 64> a;
    tile::Input<bf16, 64, n> b;
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
