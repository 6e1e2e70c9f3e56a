// A vector of an own epilogue is a span: a buffer owns, and a matrix has rows.
// expect: "tessera: per_column and per_row take a vector on the device: pass tile::per_column(buffer.span())"
#include "tessera/device_buffer.hpp"
#include "tessera/tile/epilogue_program.hpp"

using namespace tessera;

void layer(StreamRef stream, MatrixView<const f16> x, MatrixView<const f16> w, MatrixView<f16> y,
           DeviceBuffer<float>& bias)
{
#ifdef NEGATIVE
    Gemm::launch(stream, x, w, y, tile::epilogue("value + x0", tile::per_column(bias)));
#else
    Gemm::launch(stream, x, w, y, tile::epilogue("value + x0", tile::per_column(bias.span())));
#endif
}
