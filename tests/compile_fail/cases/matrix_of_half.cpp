// CUDA's own types are accepted as pointers; views name ours.
// expect: "tessera: write MatrixView<f16> (or const f16): pointers to __half are accepted"
#include "tessera/matrix_view.hpp"

using namespace tessera;

#ifdef NEGATIVE
using Element = const __half;
#else
using Element = const f16;
#endif

MatrixView<Element> view(const __half* weights)
{
    return MatrixView<Element>::from_raw_device_pointer(weights, 4, 4, 4);
}
