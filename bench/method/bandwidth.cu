#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <string>

#include "method/bandwidth.hpp"
#include "tessera/device_buffer.hpp"
#include "tessera/event.hpp"
#include "tessera/stream.hpp"

namespace tessera::bench {
namespace {

constexpr unsigned threads_per_block = 512;
constexpr int loads_in_flight = 8;  // of 16 bytes per thread: enough to cover the latency at full occupancy

__device__ std::uint32_t folded(uint4 value) { return value.x ^ value.y ^ value.z ^ value.w; }

/// Reads all of `data`. What is read goes into one number, and the number into `sink` if it has a value that the memory
/// does not hold, so that no load can be left out.
__global__ void read_all(const uint4* data, std::size_t size, std::uint32_t* sink)
{
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    std::uint32_t all = 0;
    std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
    for (; i + (loads_in_flight - 1) * stride < size; i += loads_in_flight * stride) {
        uint4 values[loads_in_flight];
#pragma unroll
        for (int load = 0; load < loads_in_flight; ++load) {
            values[load] = __ldcs(data + i + load * stride);
        }
#pragma unroll
        for (int load = 0; load < loads_in_flight; ++load) {
            all |= folded(values[load]);
        }
    }
    for (; i < size; i += stride) {
        all |= folded(data[i]);
    }
    if (all != 0) {
        *sink = all;
    }
}

}  // namespace

double measure_read_bandwidth(const Device& device)
{
    constexpr std::size_t most_bytes = std::size_t{4} << 30;
    constexpr int passes = 8;
    const DeviceProperties& properties = device.properties();
    const std::size_t bytes = std::min(most_bytes, properties.memory_bytes / 8);
    const Stream stream(device);
    DeviceBuffer<uint4> data(stream, bytes / sizeof(uint4));
    DeviceBuffer<std::uint32_t> sink(stream, 1);
    data.fill(stream, uint4{});
    const Event start(device, EventKind::timing);
    const Event stop(device, EventKind::timing);
    double best = std::numeric_limits<double>::infinity();
    for (int pass = 0; pass < passes; ++pass) {
        start.record(stream);
        const auto blocks = static_cast<unsigned>(4 * properties.sm_count);
        read_all<<<blocks, threads_per_block, 0, stream.get()>>>(data.data(), data.size(), sink.data());
        if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) {
            throw std::runtime_error(std::string("the bandwidth kernel: ") + cudaGetErrorString(status));
        }
        stop.record(stream);
        stop.synchronize();
        best = std::min(best, stop.seconds_since(start));
    }
    return static_cast<double>(data.size_bytes()) / best;
}

}  // namespace tessera::bench
