/// Misuse of the SDK that neither its types nor its checks can see, but that the emulated device reports.

#include <tessera/tessera.hpp>

#include <cstdio>
#include <string_view>
#include <vector>

using namespace tessera;

int main(int argc, char** argv)
try {
    const std::string_view what = argc == 2 ? argv[1] : "";
    const Stream stream;
    const std::vector<float> ones(64, 1.0F);
    auto a = DeviceBuffer<float>::from_host(stream, ones);
    const auto b = DeviceBuffer<float>::from_host(stream, ones);
    DeviceBuffer<float> d(stream, 64);
    if (what == "uninitialized") {
        a = DeviceBuffer<float>(stream, 64);
    }
    const MatrixView<float> view = a.matrix(8, 8);
    if (what == "dangling") {
        a = {};  // the view outlives its memory
    }
    stream.synchronize();
    Gemm::launch(stream, view, b.matrix(8, 8), d.matrix(8, 8));
    stream.synchronize();
    return 0;
} catch (const Error& error) {
    std::puts(error.what());
    return error.code() == ErrorCode::context_lost ? 3 : 1;
}
