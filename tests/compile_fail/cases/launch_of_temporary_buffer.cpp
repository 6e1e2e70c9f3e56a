// The memory would be freed before the view is used. One sentence says so, also for the argument of a product.
// expect: "tessera: matrix() of a temporary DeviceBuffer: its memory would be gone before the view is used"
#include "tessera/tessera.hpp"

using namespace tessera;

const DeviceBuffer<float> loaded(StreamRef stream);

void multiply(StreamRef stream, DeviceBuffer<float>& d)
{
#ifdef NEGATIVE
    const auto a = loaded(stream).matrix(8, 8, ColumnMajor{});
#else
    const auto buffer = loaded(stream);
    const auto a = buffer.matrix(8, 8, ColumnMajor{});
#endif
    Gemm::launch(stream, a, a, d.matrix(8, 8));
}
