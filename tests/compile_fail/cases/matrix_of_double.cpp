// No kernel of this release multiplies double, so a view of it would be useless.
// expect: "a matrix has elements of type f32, f16, bf16, tf32, f8e4m3 or f8e5m2 (or const ones)"
#include "tessera/matrix_view.hpp"

#ifdef NEGATIVE
using Element = double;
#else
using Element = float;
#endif

std::int64_t rows(const tessera::MatrixView<Element>& view) { return view.rows(); }
