// C is a member of the epilogue.
// expect: "tessera: C is part of the epilogue: pass {.c = c}"
#include "tessera/gemm.hpp"

using namespace tessera;

void multiply(StreamRef stream, MatrixView<const f32> a, MatrixView<const f32> b, MatrixView<f32> d,
              MatrixView<const f32> c)
{
#ifdef NEGATIVE
    Gemm::launch(stream, a, b, d, c);
#else
    Gemm::launch(stream, a, b, d, {.c = c});
#endif
}
