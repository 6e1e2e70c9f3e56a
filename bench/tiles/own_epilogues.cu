#include "tiles/own_epilogues.hpp"

#include "tessera/tile/gemm.cuh"

namespace tessera::bench {
namespace {

struct Residual {
    TESSERA_TILE float operator()(float value, float c) const { return value + c; }
};

}  // namespace

void own_bias_relu(StreamRef stream, const EpilogueOperands& operands)
{
    Gemm::launch(stream, operands.a, operands.b, operands.d,
                 tile::epilogue(tile::Activate<Activation::relu>{}, tile::per_column(operands.bias)));
}

void own_bias_gelu_tanh(StreamRef stream, const EpilogueOperands& operands)
{
    Gemm::launch(stream, operands.a, operands.b, operands.d,
                 tile::epilogue(tile::Activate<Activation::gelu_tanh>{}, tile::per_column(operands.bias)));
}

void own_residual(StreamRef stream, const EpilogueOperands& operands)
{
    Gemm::launch(stream, operands.a, operands.b, operands.d, tile::epilogue(Residual{}, tile::per_element(operands.c)));
}

}  // namespace tessera::bench
