// No kernel of this release multiplies double; a view of it could be used for nothing.
// expect: "a matrix has elements of type f32, f16 or bf16 (or const ones)"
#include "tessera/matrix_view.hpp"

#ifdef NEGATIVE
using Element = double;
#else
using Element = float;
#endif

std::int64_t rows(const tessera::MatrixView<Element>& view) { return view.rows(); }
