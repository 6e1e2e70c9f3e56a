// Tensor cores multiply the two 8-bit types with each other, and with nothing else.
// expect: "convert one of them; only f8e4m3 and f8e5m2 can be mixed"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Right = bf16;
#else
using Right = f8e5m2;
#endif

void multiply(StreamRef stream, MatrixView<const f8e4m3> a, MatrixView<const Right> b, MatrixView<f32> d)
{
    Gemm::launch(stream, a, b, d);
}
