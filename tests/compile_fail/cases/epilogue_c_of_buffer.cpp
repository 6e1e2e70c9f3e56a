// A buffer has no rows and columns, also as C.
// expect: "tessera: a product takes views of matrices, and a buffer or span has no rows and columns: pass buffer.matrix(rows, columns)"
#include "tessera/device_buffer.hpp"
#include "tessera/gemm.hpp"

using namespace tessera;

void multiply(StreamRef stream, MatrixView<const f32> a, MatrixView<const f32> b, MatrixView<f32> d,
              const DeviceBuffer<f32>& c)
{
#ifdef NEGATIVE
    Gemm::launch(stream, a, b, d, {.c = c});
#else
    Gemm::launch(stream, a, b, d, {.c = c.matrix(4, 4)});
#endif
}
