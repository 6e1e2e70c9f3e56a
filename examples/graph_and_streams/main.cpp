// Two streams, events and a graph: E = relu(A*B)*C.
//
//     graph_and_streams [extent]     all matrices are extent x extent (default: 256)
//
// One stream copies, the other one computes. Work of one stream runs in order. Between the two, wait() makes the order,
// and used_on() keeps memory alive for a stream that is not its home. Two chained products are captured into a graph,
// which replays them at a fraction of the cost of two launches.
#include <tessera/tessera.hpp>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/run_example.hpp"

using namespace tessera;

namespace {

constexpr int largest_extent = 1024;
constexpr int replays = 20;

/// Whole numbers from -2 to 2: |A*B| <= 4 * 1024 and |E| <= 2 * 4 * 1024^2 < 2^24, so that float holds every sum
/// exactly and the result can be compared for equality.
void fill_with_small_integers(PinnedBuffer<float>& buffer, std::uint32_t seed)
{
    for (float& element : buffer) {
        seed = 1664525U * seed + 1013904223U;  // the linear congruential generator of Numerical Recipes
        element = static_cast<float>((seed >> 16) % 5) - 2.0F;
    }
}

std::vector<float> multiply_on_cpu(std::size_t extent, const float* a, const float* b)
{
    std::vector<float> d(extent * extent);
    for (std::size_t row = 0; row < extent; ++row) {
        for (std::size_t k = 0; k < extent; ++k) {
            for (std::size_t column = 0; column < extent; ++column) {
                d[row * extent + column] += a[row * extent + k] * b[k * extent + column];
            }
        }
    }
    return d;
}

int run(int extent)
{
    const auto rows = static_cast<std::size_t>(extent);
    const std::size_t elements = rows * rows;
    const Stream copies;
    const Stream compute;
    PinnedBuffer<float> host_a(elements);
    PinnedBuffer<float> host_b(elements);
    PinnedBuffer<float> host_c(elements);
    PinnedBuffer<float> host_e(elements);
    fill_with_small_integers(host_a, 1);
    fill_with_small_integers(host_b, 2);
    fill_with_small_integers(host_c, 3);

    // Allocated and filled in the order of the stream `copies`, their home. The host does not wait.
    const Event upload_start(EventKind::timing);
    const Event upload_end(EventKind::timing);
    DeviceBuffer<float> a(copies, elements);
    DeviceBuffer<float> b(copies, elements);
    DeviceBuffer<float> c(copies, elements);
    upload_start.record(copies);
    a.copy_from_async(copies, host_a);
    b.copy_from_async(copies, host_b);
    c.copy_from_async(copies, host_c);
    upload_end.record(copies);

    DeviceBuffer<float> product(compute, elements);
    DeviceBuffer<float> e(compute, elements);
    const Graph graph = Graph::capture(compute, [&](StreamRef stream) {
        Gemm::launch(stream, a.matrix(extent, extent), b.matrix(extent, extent), product.matrix(extent, extent),
                     {.activation = Activation::relu});
        Gemm::launch(stream, product.matrix(extent, extent), c.matrix(extent, extent), e.matrix(extent, extent));
    });

    compute.wait(upload_end);  // everything below on `compute` starts after the upload
    graph.launch(compute);     // the first replay also loads the kernels
    const Event replay_start(EventKind::timing);
    const Event replay_end(EventKind::timing);
    replay_start.record(compute);
    for (int i = 0; i < replays; ++i) {
        graph.launch(compute);
    }
    replay_end.record(compute);

    // `compute` is not the home of these three: they must be freed after the replays.
    a.used_on(compute);
    b.used_on(compute);
    c.used_on(compute);

    copies.wait(compute);
    const Event download_start(EventKind::timing);
    const Event download_end(EventKind::timing);
    download_start.record(copies);
    e.copy_to_async(copies, host_e);
    download_end.record(copies);
    e.used_on(copies);
    download_end.synchronize();  // the only place where the host waits, for the times below
    host_e.synchronize();        // returns at once: the copy came before download_end

    const double replay_seconds = replay_end.seconds_since(replay_start) / replays;
    const double operations = 2.0 * 2.0 * static_cast<double>(elements) * extent;
    std::printf("upload    %8.1f us\n", 1e6 * upload_end.seconds_since(upload_start));
    std::printf("replay    %8.1f us, mean of %d: %zu kernels, %.0f GFLOP/s\n", 1e6 * replay_seconds, replays,
                graph.node_count(), 1e-9 * operations / replay_seconds);
    std::printf("download  %8.1f us\n", 1e6 * download_end.seconds_since(download_start));

    std::vector<float> hidden = multiply_on_cpu(rows, host_a.data(), host_b.data());
    std::transform(hidden.begin(), hidden.end(), hidden.begin(), [](float x) { return std::max(x, 0.0F); });
    const std::vector<float> expected = multiply_on_cpu(rows, hidden.data(), host_c.data());
    const auto [wrong, right] = std::mismatch(host_e.begin(), host_e.end(), expected.begin());
    if (wrong != host_e.end()) {
        std::fprintf(stderr, "element %td of E is %g and not %g\n", wrong - host_e.begin(), *wrong, *right);
        return examples::exit_failure;
    }
    std::printf("E = relu(A*B)*C: %zu elements, all equal to the CPU's\n", elements);
    return examples::exit_success;
}

}  // namespace

int main(int argc, char** argv)
{
    return examples::run_example("graph_and_streams", [&] {
        const long extent = argc == 2 ? std::strtol(argv[1], nullptr, 10) : 256;
        if (argc > 2 || extent < 1 || extent > largest_extent) {
            std::fprintf(stderr, "usage: graph_and_streams [extent], at most %d\n", largest_extent);
            return examples::exit_usage;
        }
        return run(static_cast<int>(extent));
    });
}
