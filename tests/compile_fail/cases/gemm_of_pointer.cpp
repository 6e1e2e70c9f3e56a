// A pointer does not say what it points to.
// expect: "tessera: a product takes views of matrices, and a pointer has no rows and columns: pass MatrixView<T>::from_raw_device_pointer(pointer, rows, columns, leading_dimension)"
#include "tessera/gemm.hpp"

using namespace tessera;

void multiply(StreamRef stream, MatrixView<const f32> a, const f32* b, MatrixView<f32> d)
{
#ifdef NEGATIVE
    Gemm::launch(stream, a, b, d);
#else
    Gemm::launch(stream, a, MatrixView<const f32>::from_raw_device_pointer(b, 4, 4, 4), d);
#endif
}
