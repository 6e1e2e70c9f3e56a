// TMA swizzles no lines of 24 bytes.
// expect: "tessera: a streamed tile's contiguous side must have 16, 32, 64 or a multiple of 128 bytes"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
constexpr int k = 12;
#else
constexpr int k = 16;
#endif

struct Program {
    tile::Input<bf16, 128, k> a;
    tile::Input<bf16, k, 128, ColumnMajor> b;
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
