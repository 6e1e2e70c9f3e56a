// No kernel multiplies elements of two types; an implicit conversion would cost memory and a pass over it.
// expect: "A and B have different element types"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Right = bf16;
#else
using Right = f16;
#endif

void multiply(StreamRef stream, MatrixView<const f16> a, MatrixView<const Right> b, MatrixView<f32> d)
{
    Gemm::launch(stream, a, b, d);
}
