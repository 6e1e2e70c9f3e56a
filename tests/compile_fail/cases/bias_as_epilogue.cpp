// A bias is a member of the epilogue, also of a plan's launch.
// expect: "tessera: a bias is part of the epilogue: pass {.bias = bias}"
#include "tessera/gemm.hpp"

using namespace tessera;

void multiply(const GemmPlan& plan, StreamRef stream, MatrixView<const f32> a, MatrixView<const f32> b,
              MatrixView<f32> d, const Bias& bias)
{
#ifdef NEGATIVE
    plan.launch(stream, a, b, d, bias);
#else
    plan.launch(stream, a, b, d, {.bias = bias});
#endif
}
