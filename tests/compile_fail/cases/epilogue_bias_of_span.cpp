// A span does not say whether it runs along rows or columns.
// expect: "tessera: a bias runs along rows or columns: pass Bias::per_column(buffer.span()) for one element per column of D, or Bias::per_row(...)"
#include "tessera/gemm.hpp"

using namespace tessera;

void multiply(StreamRef stream, MatrixView<const f32> a, MatrixView<const f32> b, MatrixView<f32> d,
              DeviceSpan<const f32> bias)
{
#ifdef NEGATIVE
    Gemm::launch(stream, a, b, d, {.bias = bias});
#else
    Gemm::launch(stream, a, b, d, {.bias = Bias::per_column(bias)});
#endif
}
