#pragma once

/// The tile program of programs/layer.cuh, compiled ahead of time.

#include "tessera/element.hpp"
#include "tessera/matrix_view.hpp"
#include "tessera/stream.hpp"

namespace tessera::scenarios {

/// The program's type where it is compiled at run time.
inline constexpr const char* layer_type = "Layer<128, 64, 32>";

/// d = max(x * w + bias, 0).
void launch_layer(StreamRef stream, const MatrixView<const f16>& x, const MatrixView<const f16>& w,
                  const MatrixView<const float>& bias, const MatrixView<float>& d);

}  // namespace tessera::scenarios
