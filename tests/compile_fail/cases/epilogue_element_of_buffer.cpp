// A matrix of an own epilogue is a view.
// expect: "tessera: per_element takes a matrix: pass tile::per_element(buffer.matrix(rows, columns))"
#include "tessera/device_buffer.hpp"
#include "tessera/tile/epilogue_program.hpp"

using namespace tessera;

void layer(StreamRef stream, MatrixView<const f16> x, MatrixView<const f16> w, MatrixView<f16> y,
           DeviceBuffer<f16>& residual)
{
#ifdef NEGATIVE
    Gemm::launch(stream, x, w, y, tile::epilogue("value + x0", tile::per_element(residual)));
#else
    Gemm::launch(stream, x, w, y,
                 tile::epilogue("value + x0", tile::per_element(residual.matrix(y.rows(), y.columns()))));
#endif
}
