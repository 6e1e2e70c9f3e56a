// A vector alone could run along rows or columns.
// expect: "tessera: an epilogue's operands are per_column(span), per_row(span) and per_element(matrix)"
#include "tessera/tile/gemm.cuh"

using namespace tessera;

struct AddBias {
    TESSERA_TILE float operator()(float value, float bias) const { return value + bias; }
};

void run(StreamRef stream, const MatrixView<f16>& x, const MatrixView<float>& d, DeviceSpan<float> bias)
{
#ifdef NEGATIVE
    Gemm::launch(stream, x, x, d, tile::epilogue(AddBias{}, bias));
#else
    Gemm::launch(stream, x, x, d, tile::epilogue(AddBias{}, tile::per_row(bias)));
#endif
}
