// A kernel of your own through tessera::launch: c = a + b.
//
// The types prevent the usual mistakes. A DisjointSpan can be written only with a ThreadIndex, so no two threads write
// the same element. A DeviceSpan stops the kernel at an index out of range. launch compares the arguments with the
// kernel's parameters at compile time, and checks the launch itself.
#include <tessera/device/disjoint_span.cuh>
#include <tessera/tessera.hpp>

#include <cstdio>
#include <vector>

#include "common/run_example.hpp"

using namespace tessera;

__global__ void add(DisjointSpan<float> c, DeviceSpan<const float> a, DeviceSpan<const float> b)
{
    const auto index = ThreadIndex::in_grid();
    if (c.contains(index)) {  // the grid is rounded up to whole CTAs
        c[index] = a[index.value()] + b[index.value()];
    }
}

int main()
{
    return examples::run_example("vector_add", [] {
        constexpr std::size_t size = 1'000'003;  // no multiple of anything
        std::vector<float> a(size);
        std::vector<float> b(size);
        for (std::size_t i = 0; i < size; ++i) {
            a[i] = static_cast<float>(i);
            b[i] = 0.5F * static_cast<float>(size - i);
        }

        Stream stream;
        const auto device_a = DeviceBuffer<float>::from_host(stream, a);
        const auto device_b = DeviceBuffer<float>::from_host(stream, b);
        DeviceBuffer<float> device_c(stream, size);
        launch(add, LaunchConfig::covering(stream, size), DisjointSpan(device_c), device_a.span(), device_b.span());
        const std::vector<float> c = device_c.to_vector();

        for (std::size_t i = 0; i < size; ++i) {
            if (c[i] != a[i] + b[i]) {  // one rounded addition on both sides: equal, not merely close
                std::fprintf(stderr, "c[%zu] is %g and not %g + %g\n", i, c[i], a[i], b[i]);
                return examples::exit_failure;
            }
        }
        std::printf("c = a + b: %zu elements, all right; the last one is %g\n", size, c.back());
        return examples::exit_success;
    });
}
