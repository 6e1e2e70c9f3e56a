// The variant comes last, since it is rarely given.
// expect: "tessera: the variant comes after the epilogue: pass {} for none, launch(stream, a, b, d, {}, variant)"
#include "tessera/gemm.hpp"

using namespace tessera;

void multiply(StreamRef stream, MatrixView<const f32> a, MatrixView<const f32> b, MatrixView<f32> d)
{
#ifdef NEGATIVE
    Gemm::launch(stream, a, b, d, Variant::simt_tiled);
#else
    Gemm::launch(stream, a, b, d, {}, Variant::simt_tiled);
#endif
}
