// A DisjointMatrix exists to be written through.
// expect: "tessera: DisjointMatrix<T> is for writing: use MatrixView<const T> to read"
#include "tessera/device/disjoint_span.cuh"

using namespace tessera;

#ifdef NEGATIVE
using View = MatrixView<const float>;
#else
using View = MatrixView<float>;
#endif

auto output(View view) { return DisjointMatrix(view); }
