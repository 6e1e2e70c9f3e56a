#include "method/bandwidth.hpp"

#include <cuda_runtime.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "tessera/device_buffer.hpp"
#include "tessera/event.hpp"

namespace tessera::bench {
namespace {

constexpr unsigned threads_per_block = 512;
constexpr int blocks_per_sm = 2;
constexpr int loads_in_flight = 8;  // of 16 bytes per thread; enough to hide the latency

__device__ std::uint32_t folded(uint4 value) { return value.x ^ value.y ^ value.z ^ value.w; }

__device__ std::uint32_t folded(ReadSpan span)
{
    const auto* const data = static_cast<const uint4*>(span.data);
    const std::size_t size = span.bytes / sizeof(uint4);
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    std::uint32_t all = 0;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < size; i += loads_in_flight * stride) {
        uint4 values[loads_in_flight] = {};
#pragma unroll
        for (int load = 0; load < loads_in_flight; ++load) {
            if (i + load * stride < size) {
                values[load] = __ldcs(data + i + load * stride);
            }
        }
#pragma unroll
        for (const uint4& value : values) {
            all ^= folded(value);
        }
    }
    return all;
}

/// Combines everything it reads into one number and writes it to `sink` only if it has one unlikely value, so that the
/// compiler cannot remove a load.
__global__ void read_all(ReadSpan a, ReadSpan b, std::uint32_t* sink)
{
    constexpr std::uint32_t unlikely = 0x7E55E7A1;
    const std::uint32_t all = folded(a) ^ folded(b);
    if (all == unlikely) {
        *sink = all;
    }
}

}  // namespace

void enqueue_read(StreamRef stream, int sm_count, ReadSpan a, ReadSpan b, std::uint32_t* sink)
{
    read_all<<<static_cast<unsigned>(blocks_per_sm * sm_count), threads_per_block, 0, stream.get()>>>(a, b, sink);
    if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) {
        throw std::runtime_error(std::string("the kernel that only reads: ") + cudaGetErrorString(status));
    }
}

double measure_read_bandwidth(const Device& device)
{
    constexpr std::size_t most_bytes = std::size_t{4} << 30;
    constexpr int passes = 8;
    const DeviceProperties& properties = device.properties();
    const Stream stream(device);
    DeviceBuffer<uint4> data(stream, std::min(most_bytes, properties.memory_bytes / 8) / sizeof(uint4));
    DeviceBuffer<std::uint32_t> sink(stream, 1);
    data.fill(stream, uint4{});
    const Event start(device, EventKind::timing);
    const Event stop(device, EventKind::timing);
    double best = std::numeric_limits<double>::infinity();
    for (int pass = 0; pass < passes; ++pass) {
        start.record(stream);
        enqueue_read(stream, properties.sm_count, {data.data(), data.size_bytes()}, {}, sink.data());
        stop.record(stream);
        stop.synchronize();
        best = std::min(best, stop.seconds_since(start));
    }
    return static_cast<double>(data.size_bytes()) / best;
}

}  // namespace tessera::bench
