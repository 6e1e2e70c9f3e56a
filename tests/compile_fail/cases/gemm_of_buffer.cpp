// A buffer has no rows and columns; a view of it has.
// expect: "tessera: a product takes views of matrices, and a buffer or span has no rows and columns: pass buffer.matrix(rows, columns)"
#include "tessera/device_buffer.hpp"
#include "tessera/gemm.hpp"

using namespace tessera;

void multiply(StreamRef stream, const DeviceBuffer<f32>& a, MatrixView<const f32> b, MatrixView<f32> d)
{
#ifdef NEGATIVE
    Gemm::launch(stream, a, b, d);
#else
    Gemm::launch(stream, a.matrix(4, 4), b, d);
#endif
}
