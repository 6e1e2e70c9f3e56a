#pragma once

/// Products with an epilogue of one's own that `tessera-bench tiles --epilogues` measures.

#include "tessera/device_span.hpp"
#include "tessera/element.hpp"
#include "tessera/matrix_view.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {

/// A product's operands: B column-major.
struct EpilogueOperands {
    MatrixView<const bf16> a;
    MatrixView<const bf16, ColumnMajor> b;
    MatrixView<const bf16> c;
    DeviceSpan<const float> bias;
    MatrixView<bf16> d;
};

/// d = relu(a * b + bias)
void own_bias_relu(StreamRef stream, const EpilogueOperands& operands);
/// d = gelu(a * b + bias), with tanh
void own_bias_gelu_tanh(StreamRef stream, const EpilogueOperands& operands);
/// d = a * b + c
void own_residual(StreamRef stream, const EpilogueOperands& operands);

}  // namespace tessera::bench
