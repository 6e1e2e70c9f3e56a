// The host API and a user's kernel in one file compiled by nvcc.

#include <cstdio>
#include <string>
#include <tessera/device/disjoint_span.cuh>
#include <tessera/tessera.hpp>
#include <vector>

using namespace tessera;

__global__ void add(DisjointSpan<float> sum, DeviceSpan<const float> left, DeviceSpan<const float> right)
{
    const auto index = ThreadIndex::in_grid();
    if (sum.contains(index)) {
        sum[index] = left[index.value()] + right[index.value()];
    }
}

int main()
try {
    const GemmProblem problem{.m = 4096, .n = 4096, .k = 512, .input = ElementType::bf16, .output = ElementType::bf16};
    std::printf("tessera %s\n", TESSERA_VERSION_STRING);
    std::fputs(GemmPlan::explain(problem, DeviceProperties::of_compute_capability(10, 0)).c_str(), stdout);
    if (Device::count() == 0) {
        std::puts("no device: nothing was launched");
        return 0;
    }

    constexpr std::size_t n = 40;
    Stream stream;
    const auto ones = DeviceBuffer<float>::from_host(stream, std::vector<float>(n * n, 1.0F));
    DeviceBuffer<float> product(stream, n * n);
    DeviceBuffer<float> sum(stream, n * n);
    Gemm::launch(stream, ones.matrix(n, n), ones.matrix(n, n), product.matrix(n, n));
    launch(add, LaunchConfig::covering(stream, sum.size()), DisjointSpan(sum), product.span(), ones.span());
    for (const float element : sum.to_vector()) {
        if (element != n + 1) {
            std::printf("an element is %g and not %zu\n", element, n + 1);
            return 1;
        }
    }
    std::puts("launched: all elements are right");
    return 0;
} catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
}
