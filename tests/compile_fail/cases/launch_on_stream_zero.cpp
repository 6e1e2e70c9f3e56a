// 0 would silently be the legacy default stream. One sentence says so, also if the stream is the argument of a product.
// expect: "tessera: 0 or nullptr would be the legacy default stream, which all blocking streams wait for"
#include "tessera/tessera.hpp"

using namespace tessera;

void multiply(const Device& device, DeviceBuffer<float>& d)
{
#ifdef NEGATIVE
    static_cast<void>(device);
    Gemm::launch(0, d.matrix(8, 8), d.matrix(8, 8), d.matrix(8, 8));
#else
    Gemm::launch(device.default_stream(), d.matrix(8, 8), d.matrix(8, 8), d.matrix(8, 8));
#endif
}
