// tf32 is a way to read f32 operands: a result would lose bits and gain nothing.
// expect: "the output D has elements of f32, f16, bf16, f8e4m3 or f8e5m2; tf32 is for A and B only"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Output = tf32;
#else
using Output = f8e4m3;
#endif

void multiply(StreamRef stream, MatrixView<const f8e4m3> a, MatrixView<const f8e4m3> b, MatrixView<Output> d)
{
    Gemm::launch(stream, a, b, d);
}
