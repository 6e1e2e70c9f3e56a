// Multiplies two matrices on the GPU. Plain C++20: needs no nvcc.
#include <tessera/tessera.hpp>

#include <cstddef>
#include <cstdio>
#include <vector>

using namespace tessera;

int main()
try {
    if (Device::count() == 0) {
        std::fputs("quickstart: skipped, because this machine has no CUDA device\n", stderr);
        return 77;
    }
    constexpr std::size_t m = 300, n = 200, k = 100;
    std::vector<float> a(m * k), b(k * n);
    for (std::size_t i = 0; i < m * k; ++i) {
        a[i] = static_cast<float>(i / k % 10);  // row r of A holds r % 10
    }
    for (std::size_t i = 0; i < k * n; ++i) {
        b[i] = static_cast<float>(i % n % 10);  // column c of B holds c % 10
    }

    // README.md shows the lines from here
    Stream stream;
    const auto device_a = DeviceBuffer<float>::from_host(stream, a);
    const auto device_b = DeviceBuffer<float>::from_host(stream, b);
    DeviceBuffer<float> device_d(stream, m * n);
    Gemm::launch(stream, device_a.matrix(m, k), device_b.matrix(k, n), device_d.matrix(m, n));
    const std::vector<float> d = device_d.to_vector();
    // to here.

    std::size_t wrong = 0;
    for (std::size_t i = 0; i < m * n; ++i) {
        wrong += d[i] != static_cast<float>(k * (i / n % 10) * (i % n % 10)) ? 1 : 0;
    }
    std::printf("D(0,0) = %g, D(1,2) = %g, D(299,199) = %g; %zu of %zu elements wrong\n", d[0], d[n + 2], d[m * n - 1],
                wrong, m * n);
    return wrong == 0 ? 0 : 1;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
