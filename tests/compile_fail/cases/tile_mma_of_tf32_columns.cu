// 32-bit elements are not transposed on their way to the tensor core.
// expect: "tessera: tiles of other than 16-bit elements are multiplied contiguous along K: A is RowMajor, and B"
#include "tessera/tile.cuh"

using namespace tessera;

#ifdef NEGATIVE
using Order = ColumnMajor;
#else
using Order = RowMajor;
#endif

struct Program {
    tile::Input<tf32, 128, 32, Order> a;
    tile::Input<tf32, 32, 128, ColumnMajor> b;
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
