// An 8-bit result would need a scale, and that depends on the product.
// expect: "the output D has elements of f32, f16 or bf16; tf32 and 8-bit types are for A and B only"
#include "tessera/gemm.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Output = f8e4m3;
#else
using Output = bf16;
#endif

void multiply(StreamRef stream, MatrixView<const f8e4m3> a, MatrixView<const f8e4m3> b, MatrixView<Output> d)
{
    Gemm::launch(stream, a, b, d);
}
