// The same for a span, and for a plan.
// expect: "tessera: a product takes views of matrices, and a buffer or span has no rows and columns: pass buffer.matrix(rows, columns)"
#include "tessera/gemm.hpp"

using namespace tessera;

void multiply(const GemmPlan& plan, StreamRef stream, MatrixView<const f32> a, MatrixView<const f32> b,
              DeviceSpan<f32> d)
{
#ifdef NEGATIVE
    plan.launch(stream, a, b, d);
#else
    plan.launch(stream, a, b, d.matrix(4, 4));
#endif
}
