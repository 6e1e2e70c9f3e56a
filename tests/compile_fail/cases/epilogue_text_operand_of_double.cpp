// Operands that are not floats are matrices and vectors.
// expect: "tessera: an epilogue's operands are per_column(span), per_row(span), per_element(matrix) and floats"
#include "tessera/tile/epilogue_program.hpp"

using namespace tessera;

void run(StreamRef stream, const MatrixView<f16>& x, const MatrixView<float>& d)
{
#ifdef NEGATIVE
    Gemm::launch(stream, x, x, d, tile::epilogue("value * x0", 0.5));
#else
    Gemm::launch(stream, x, x, d, tile::epilogue("value * x0", 0.5F));
#endif
}
