// Reading f32 as tf32 loses 13 bits of each element, so only as_tf32 converts a view.
// expect: "A and B have different element types"
#include "tessera/gemm.hpp"

using namespace tessera;

void multiply(StreamRef stream, MatrixView<const tf32> a, MatrixView<const f32> b, MatrixView<f32> d)
{
#ifdef NEGATIVE
    Gemm::launch(stream, a, b, d);
#else
    Gemm::launch(stream, a, as_tf32(b), d);
#endif
}
