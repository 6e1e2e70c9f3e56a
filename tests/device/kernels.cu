#include "kernels.hpp"

#include <cooperative_groups.h>

#include <cuda/stream_ref>
#include <type_traits>

#include "tessera/stream.hpp"

namespace tessera::test {

static_assert(std::is_convertible_v<cuda::stream_ref, StreamRef>, "the ecosystem's streams are taken as they are");

namespace {

__global__ void gate(const volatile int* gate, int* timed_out, std::uint64_t nanoseconds)
{
    const auto now = [] {
        std::uint64_t time;
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
        return time;
    };
    const std::uint64_t end = now() + nanoseconds;
    while (*gate == 0) {
        if (now() > end) {
            *timed_out = 1;
            return;
        }
        __nanosleep(1000);
    }
}

__global__ void add(DisjointSpan<float> out, DeviceSpan<const float> in, float addend)
{
    const auto index = ThreadIndex::in_grid();
    if (out.contains(index)) {
        out[index] = in[index.value()] + addend;
    }
}

__global__ void iota(DisjointSpan<std::uint32_t> out)
{
    for (auto index = ThreadIndex::in_grid(); out.contains(index); index.advance()) {
        out[index] = static_cast<std::uint32_t>(index.value());
    }
}

__global__ void use_shared_memory(DeviceSpan<std::uint32_t> out, unsigned words)
{
    extern __shared__ std::uint32_t shared[];
    for (unsigned i = threadIdx.x; i < words; i += blockDim.x) {
        shared[i] = blockIdx.x + 1;
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        std::uint32_t sum = 0;
        for (unsigned i = 0; i < words; ++i) {
            sum += shared[i];
        }
        out[blockIdx.x] = sum;
    }
}

__global__ void greet_neighbour(DeviceSpan<std::uint32_t> out)
{
#if __CUDA_ARCH__ >= 900
    namespace cg = cooperative_groups;
    __shared__ std::uint32_t greeting;
    const cg::cluster_group cluster = cg::this_cluster();
    const unsigned neighbour = (cluster.block_rank() + 1) % cluster.num_blocks();
    cluster.sync();  // all CTAs of the cluster have started
    if (threadIdx.x == 0) {
        *cluster.map_shared_rank(&greeting, neighbour) = cluster.block_rank();
    }
    cluster.sync();
    if (threadIdx.x == 0) {
        out[blockIdx.x] = 1000 * cluster.num_blocks() + greeting;
    }
#else
    static_cast<void>(out);
#endif
}

/// The barrier of all CTAs works only in a cooperative launch.
__global__ void pass_on_across_grid(DeviceSpan<std::uint32_t> out)
{
    out[blockIdx.x] = blockIdx.x;
    cooperative_groups::this_grid().sync();
    const std::uint32_t neighbour = out[(blockIdx.x + 1) % gridDim.x];
    cooperative_groups::this_grid().sync();
    out[blockIdx.x] = neighbour;
}

__global__ void increment_slowly(DeviceSpan<std::uint32_t> data)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();  // the next kernel may start, but must wait for what follows
    __nanosleep(20000);
    data[blockIdx.x] += 1;
#else
    static_cast<void>(data);
#endif
}

__global__ void double_after_wait(DeviceSpan<std::uint32_t> data)
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
    data[blockIdx.x] *= 2;
#else
    static_cast<void>(data);
#endif
}

__global__ void __launch_bounds__(64) small_blocks_only(DeviceSpan<std::uint32_t> out) { out[threadIdx.x] = 1; }

template <class T>
__global__ void narrow(DisjointSpan<std::uint16_t> out, DeviceSpan<const std::uint32_t> in)
{
    const auto index = ThreadIndex::in_grid();
    if (out.contains(index)) {
        out[index] = T(__uint_as_float(in[index.value()])).bits;
    }
}

template <class T>
__global__ void widen(DisjointSpan<std::uint32_t> out)
{
    const auto index = ThreadIndex::in_grid();
    if (out.contains(index)) {
        const float value = T::from_bits(static_cast<decltype(T::bits)>(index.value()));
        out[index] = __float_as_uint(value);
    }
}

__global__ void count_different(DeviceSpan<const std::uint64_t> memory, std::uint64_t value, unsigned long long* count)
{
    unsigned long long mine = 0;
    const std::size_t stride = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < memory.size(); i += stride) {
        mine += memory[i] != value;
    }
    if (mine != 0) {
        atomicAdd(count, mine);
    }
}

template <class T>
__global__ void fill_small_values(DisjointSpan<T> memory, std::uint64_t seed)
{
    for (auto index = ThreadIndex::in_grid(); memory.contains(index); index.advance()) {
        memory[index] = T(small_value(seed, index.value()));
    }
}

__global__ void read(DeviceSpan<float> out, DeviceSpan<const float> memory, std::uint64_t index)
{
    out[0] = memory[index];
}

}  // namespace

Kernel<const volatile int*, int*, std::uint64_t> gate_kernel() { return gate; }
Kernel<DisjointSpan<float>, DeviceSpan<const float>, float> add_kernel() { return add; }
Kernel<DisjointSpan<std::uint32_t>> iota_kernel() { return iota; }
Kernel<DeviceSpan<std::uint32_t>, unsigned> shared_memory_kernel() { return use_shared_memory; }
Kernel<DeviceSpan<std::uint32_t>> cluster_kernel() { return greet_neighbour; }
Kernel<DeviceSpan<std::uint32_t>> grid_barrier_kernel() { return pass_on_across_grid; }
Kernel<DeviceSpan<std::uint32_t>> increment_kernel() { return increment_slowly; }
Kernel<DeviceSpan<std::uint32_t>> double_kernel() { return double_after_wait; }
Kernel<DeviceSpan<std::uint32_t>> bounded_kernel() { return small_blocks_only; }
Kernel<DisjointSpan<std::uint16_t>, DeviceSpan<const std::uint32_t>> narrow_f16_kernel() { return narrow<f16>; }
Kernel<DisjointSpan<std::uint16_t>, DeviceSpan<const std::uint32_t>> narrow_bf16_kernel() { return narrow<bf16>; }
Kernel<DisjointSpan<std::uint16_t>, DeviceSpan<const std::uint32_t>> narrow_e4m3_kernel() { return narrow<f8e4m3>; }
Kernel<DisjointSpan<std::uint16_t>, DeviceSpan<const std::uint32_t>> narrow_e5m2_kernel() { return narrow<f8e5m2>; }
Kernel<DisjointSpan<std::uint32_t>> widen_f16_kernel() { return widen<f16>; }
Kernel<DisjointSpan<std::uint32_t>> widen_bf16_kernel() { return widen<bf16>; }
Kernel<DisjointSpan<std::uint32_t>> widen_e4m3_kernel() { return widen<f8e4m3>; }
Kernel<DisjointSpan<std::uint32_t>> widen_e5m2_kernel() { return widen<f8e5m2>; }
Kernel<DeviceSpan<const std::uint64_t>, std::uint64_t, unsigned long long*> count_different_kernel()
{
    return count_different;
}
Kernel<DisjointSpan<float>, std::uint64_t> fill_f32_kernel() { return fill_small_values<float>; }
Kernel<DisjointSpan<f16>, std::uint64_t> fill_f16_kernel() { return fill_small_values<f16>; }
Kernel<DeviceSpan<float>, DeviceSpan<const float>, std::uint64_t> read_kernel() { return read; }

}  // namespace tessera::test
