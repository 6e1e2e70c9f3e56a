#pragma once

/// The kernels of the device tests, as function pointers, so that the tests themselves are plain C++.

#include <cstdint>

#include "tessera/device/disjoint_span.cuh"
#include "tessera/device_span.hpp"
#include "tessera/element.hpp"

namespace tessera::test {

template <class... Parameters>
using Kernel = void (*)(Parameters...);

/// One thread: waits until the host sets `*gate`, which is pinned memory, or until `nanoseconds` have passed; then it
/// sets `*timed_out`. A mistake in a test cannot hang the device.
Kernel<const volatile int*, int*, std::uint64_t> gate_kernel();

/// out[i] = in[i] + addend, for the thread's own i.
Kernel<DisjointSpan<float>, DeviceSpan<const float>, float> add_kernel();

/// out[i] = i for every i, by a loop over the grid; needs no particular grid.
Kernel<DisjointSpan<std::uint32_t>> iota_kernel();

/// Each CTA writes index + 1 to each of the `words` words of its dynamic shared memory, and their sum to its element of
/// `out`.
Kernel<DeviceSpan<std::uint32_t>, unsigned> shared_memory_kernel();

/// CTAs in clusters: each writes for its neighbour through distributed shared memory. Its element of `out` becomes 1000
/// * (size of the cluster) + rank of the neighbour that wrote to it.
Kernel<DeviceSpan<std::uint32_t>> cluster_kernel();

/// CTAs of one thread; out[i] = (i + 1) % size, through a barrier of the whole grid, which needs a cooperative launch.
Kernel<DeviceSpan<std::uint32_t>> grid_barrier_kernel();

/// CTAs of one thread; compute capability 9.0. The first kernel lets the next one start, then adds 1 to each element;
/// the second waits for the previous kernel, then doubles each element.
Kernel<DeviceSpan<std::uint32_t>> increment_kernel();
Kernel<DeviceSpan<std::uint32_t>> double_kernel();

/// A kernel with __launch_bounds__(64).
Kernel<DeviceSpan<std::uint32_t>> bounded_kernel();

/// out[i] = bits of T(in[i]); in[i] = bits of a float.
Kernel<DisjointSpan<std::uint16_t>, DeviceSpan<const std::uint32_t>> narrow_f16_kernel();
Kernel<DisjointSpan<std::uint16_t>, DeviceSpan<const std::uint32_t>> narrow_bf16_kernel();
Kernel<DisjointSpan<std::uint16_t>, DeviceSpan<const std::uint32_t>> narrow_e4m3_kernel();
Kernel<DisjointSpan<std::uint16_t>, DeviceSpan<const std::uint32_t>> narrow_e5m2_kernel();
/// out[i] = bits of float(T with the bits i).
Kernel<DisjointSpan<std::uint32_t>> widen_f16_kernel();
Kernel<DisjointSpan<std::uint32_t>> widen_bf16_kernel();
Kernel<DisjointSpan<std::uint32_t>> widen_e4m3_kernel();
Kernel<DisjointSpan<std::uint32_t>> widen_e5m2_kernel();

/// Adds the number of elements of `memory` that differ from `value` to *count.
Kernel<DeviceSpan<const std::uint64_t>, std::uint64_t, unsigned long long*> count_different_kernel();

/// memory[i] = small_value(seed, i), in the element's type.
Kernel<DisjointSpan<float>, std::uint64_t> fill_f32_kernel();
Kernel<DisjointSpan<f16>, std::uint64_t> fill_f16_kernel();

/// Reads memory[index], for any index, and writes it to out[0].
Kernel<DeviceSpan<float>, DeviceSpan<const float>, std::uint64_t> read_kernel();

/// Multiples of 1/8 from -1 to 7/8: exact in every element type.
TESSERA_DETAIL_HOST_DEVICE constexpr float small_value(std::uint64_t seed, std::uint64_t index) noexcept
{
    std::uint64_t value = (index + seed) * 0x9E3779B97F4A7C15U;
    value = (value ^ (value >> 29)) * 0xBF58476D1CE4E5B9U;
    return static_cast<float>(static_cast<int>(value >> 60)) * 0.125F - 1.0F;
}

}  // namespace tessera::test
