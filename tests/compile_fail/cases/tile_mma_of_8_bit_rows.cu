// 8-bit elements are not transposed on their way to the tensor core.
// architecture: "compute_90a"
// expect: "tessera: tiles of other than 16-bit elements are multiplied contiguous along K: A is RowMajor, and B"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Order = RowMajor;
#else
using Order = ColumnMajor;
#endif

struct Program {
    tile::Input<f8e4m3, 128, 64> a;
    tile::Input<f8e4m3, 64, 128, Order> b;
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
