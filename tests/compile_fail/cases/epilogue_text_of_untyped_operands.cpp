// The types of A, B and D are compiled into the kernel.
// expect: "tessera: with an epilogue of your own, A, B and D are MatrixViews or BatchViews: their types are compiled into the kernel"
#include "tessera/tile/epilogue_program.hpp"

using namespace tessera;

void run(StreamRef stream, const MatrixView<f16>& x, const MatrixView<float>& d)
{
    const auto square = tile::epilogue("value * value");
#ifdef NEGATIVE
    Gemm::launch(stream, MatrixOperand(x), MatrixOperand(x), MatrixOperand(d), square);
#else
    Gemm::launch(stream, x, x, d, square);
#endif
}
