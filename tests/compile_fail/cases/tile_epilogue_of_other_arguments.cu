// The function gets a float for each operand.
// expect: "tessera: an epilogue's function takes the value, or the value, its row and its column, and then a float for each operand: float operator()(float value, float bias) const, marked TESSERA_TILE"
#include "tessera/tile/gemm.cuh"

using namespace tessera;

struct AddBias {
#ifdef NEGATIVE
    TESSERA_TILE float operator()(float value) const { return value; }
#else
    TESSERA_TILE float operator()(float value, float bias) const { return value + bias; }
#endif
};

void run(StreamRef stream, const MatrixView<f16>& x, const MatrixView<float>& d, DeviceSpan<float> bias)
{
    Gemm::launch(stream, x, x, d, tile::epilogue(AddBias{}, tile::per_column(bias)));
}
