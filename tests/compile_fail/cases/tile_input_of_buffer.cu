// A buffer has no rows and columns.
// expect: "tessera: an input or output views a MatrixView or a BatchView: pass buffer.matrix(rows, columns)"
#include "tessera/device_buffer.hpp"
#include "tessera/tile.cuh"

using namespace tessera;

struct Program {
    tile::Input<float, 4, 32> x;
    tile::Output<float, 4, 32> y;

    TESSERA_TILE void operator()(auto cta) const
    {
        for (auto at : y.tiles(cta)) {
            y.store(at, x.load(at));
        }
    }
};

void run(StreamRef stream, const DeviceBuffer<float>& x, DeviceBuffer<float>& y)
{
#ifdef NEGATIVE
    tile::launch(stream, Program{x, y.matrix(4, 32)});
#else
    tile::launch(stream, Program{x.matrix(4, 32), y.matrix(4, 32)});
#endif
}
