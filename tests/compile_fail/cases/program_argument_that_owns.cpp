// A buffer has no shape.
// expect: "tessera: an argument of a tile program is a MatrixView, a BatchView, a DeviceSpan of numbers or a plain value: buffer.matrix(rows, columns) is a view"
#include "tessera/device_buffer.hpp"
#include "tessera/tile/program.hpp"

using namespace tessera;

void run(StreamRef stream, const tile::Kernel& kernel, DeviceBuffer<float>& buffer)
{
#ifdef NEGATIVE
    kernel.launch(stream, buffer);
#else
    kernel.launch(stream, buffer.matrix(4, 4));
#endif
}
