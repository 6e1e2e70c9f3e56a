// A kernel cannot access a vector's memory.
// expect: "tessera: a product takes views of matrices on the device, and this is host memory: copy it with DeviceBuffer<T>::from_host(stream, values) and pass buffer.matrix(rows, columns)"
#include <vector>

#include "tessera/device_buffer.hpp"
#include "tessera/gemm.hpp"

using namespace tessera;

void multiply(StreamRef stream, const std::vector<f32>& a, MatrixView<const f32> b, MatrixView<f32> d)
{
#ifdef NEGATIVE
    Gemm::launch(stream, a, b, d);
#else
    const auto buffer = DeviceBuffer<f32>::from_host(stream, a);
    Gemm::launch(stream, buffer.matrix(4, 4), b, d);
#endif
}
