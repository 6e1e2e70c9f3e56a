// There are two storage orders; a flag or another library's name is not one of them.
// expect: "the storage order of a matrix is RowMajor or ColumnMajor"
#include "tessera/matrix_view.hpp"

#ifdef NEGATIVE
struct Tiled;
using Order = Tiled;
#else
using Order = tessera::ColumnMajor;
#endif

std::int64_t rows(const tessera::MatrixView<float, Order>& view) { return view.rows(); }
