#include "scenarios/layer_program.hpp"

#include <tessera/tile.cuh>

#include "scenarios/programs/layer.cuh"

namespace tessera::scenarios {

void launch_layer(StreamRef stream, const MatrixView<const f16>& x, const MatrixView<const f16>& w,
                  const MatrixView<const float>& bias, const MatrixView<float>& d)
{
    tile::launch(stream, Layer<128, 64, 32>{x, w, bias, d});
}

}  // namespace tessera::scenarios
