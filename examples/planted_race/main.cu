// A bug to find: y = A * x, once with a forgotten barrier and once correct.
//
// Forgotten barriers are common in kernels that use shared memory, and hard to see: a GPU may well give the right
// answer. `tessera-emu` reports this one in the first run, with its line.
//
//     tessera-emu --strict -- planted_race forgotten
//     tessera-emu --strict -- planted_race corrected
#include <tessera/device/disjoint_span.cuh>
#include <tessera/tessera.hpp>

#include <cstdio>
#include <string_view>
#include <vector>

#include "common/run_example.hpp"

using namespace tessera;

enum class LastBarrier : unsigned char { forgotten, corrected };

constexpr unsigned threads = 128;  // per CTA, and elements of x in shared memory at a time

/// A is (rows, columns), row-major; both are multiples of `threads`. One thread per row.
template <LastBarrier Barrier>
__global__ void multiply(DisjointSpan<float> y, DeviceSpan<const float> a, DeviceSpan<const float> x)
{
    __shared__ float piece[threads];
    const auto row = ThreadIndex::in_grid();
    float sum = 0;
    for (unsigned first = 0; first < x.size(); first += threads) {
        piece[threadIdx.x] = x[first + threadIdx.x];  // the race: other warps may still read what it overwrites
        __syncthreads();                              // the piece is complete
#pragma unroll 1                                      // one load, and so one finding
        for (unsigned k = 0; k < threads; ++k) {
            sum += a[row.value() * x.size() + first + k] * piece[k];
        }
        __syncwarp();  // the lanes of this warp have read the piece
        if constexpr (Barrier == LastBarrier::corrected) {
            __syncthreads();  // all warps have read the piece: it may be overwritten
        }
    }
    y[row] = sum;
}

template <LastBarrier Barrier>
int multiply_and_check()
{
    constexpr std::size_t rows = threads;
    constexpr std::size_t columns = 4 * threads;
    std::vector<float> a(rows * columns);
    std::vector<float> x(columns);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = static_cast<float>(i % 7);
    }
    for (std::size_t i = 0; i < columns; ++i) {
        x[i] = static_cast<float>(i % 5);
    }

    const Stream stream;
    const auto device_a = DeviceBuffer<float>::from_host(stream, a);
    const auto device_x = DeviceBuffer<float>::from_host(stream, x);
    DeviceBuffer<float> device_y(stream, rows);
    launch(multiply<Barrier>, LaunchConfig(stream, {rows / threads}, {threads}), DisjointSpan(device_y),
           device_a.span(), device_x.span());
    const std::vector<float> y = device_y.to_vector();

    std::size_t wrong = 0;
    for (std::size_t row = 0; row < rows; ++row) {
        float sum = 0;  // a sum of small integers is exact in any order
        for (std::size_t k = 0; k < columns; ++k) {
            sum += a[row * columns + k] * x[k];
        }
        wrong += y[row] != sum ? 1 : 0;
    }
    std::printf("y = A * x, %zux%zu: %zu of %zu elements wrong\n", rows, columns, wrong, rows);
    return wrong == 0 ? examples::exit_success : examples::exit_failure;
}

int main(int argc, char** argv)
{
    const std::string_view barrier = argc == 2 ? argv[1] : "";
    if (barrier != "forgotten" && barrier != "corrected") {
        std::fputs("usage: planted_race forgotten|corrected\n", stderr);
        return examples::exit_usage;
    }
    return examples::run_example("planted_race", [&] {
        return barrier == "forgotten" ? multiply_and_check<LastBarrier::forgotten>()
                                      : multiply_and_check<LastBarrier::corrected>();
    });
}
