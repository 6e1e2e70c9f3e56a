#include "tensor_map_kernels.hpp"

#include <cuda/ptx>

#include "tessera/device/tma.cuh"

namespace tessera::test {
namespace {

template <class Map>
__global__ void load_box(const __grid_constant__ Map map, LoadWay way, int row, int column,
                         DeviceSpan<std::uint32_t> out)
{
#if __CUDA_ARCH__ >= 900
    namespace ptx = cuda::ptx;
    extern __shared__ std::uint8_t shared[];
    const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(shared));
    std::uint8_t* const box = shared + (1024 - address % 1024) % 1024;
    auto* const barrier = reinterpret_cast<std::uint64_t*>(box + Map::box_bytes);

    if (threadIdx.x == 0) {
        ptx::mbarrier_init(barrier, 1);
        ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);  // TMA sees the barrier, too
        ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, barrier, Map::box_bytes);
        const std::int32_t coordinates[2] = {column, row};
        if (way == LoadWay::plain) {
            ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, box, &map, coordinates, barrier);
        } else {
            const L2Policy policy = row < 0 ? L2Policy::evict_unchanged() : L2Policy::evict_first();
            tessera::detail::tensor_prefetch(&map, coordinates, policy);
            tessera::detail::tensor_load<CtaGroup::one>(box, &map, coordinates, barrier, policy);
        }
    }
    __syncthreads();  // the barrier is initialized
    for (int tries = 0; !ptx::mbarrier_try_wait_parity(barrier, 0); ++tries) {
        if (tries > 10'000'000) {
            __trap();  // better than a hanging test
        }
    }
    for (unsigned i = threadIdx.x; i < Map::box_bytes / sizeof(std::uint32_t); i += blockDim.x) {
        out[i] = reinterpret_cast<const std::uint32_t*>(box)[i];
    }
#else
    static_cast<void>(way);
    static_cast<void>(row);
    static_cast<void>(column);
    static_cast<void>(out);
#endif
}

}  // namespace

template <class Map>
Kernel<Map, LoadWay, int, int, DeviceSpan<std::uint32_t>> load_box_kernel()
{
    return load_box<Map>;
}

#define TESSERA_TEST_INSTANTIATE(T, PATTERN)                                                    \
    template Kernel<TestMap<T, Swizzle::PATTERN>, LoadWay, int, int, DeviceSpan<std::uint32_t>> \
    load_box_kernel<TestMap<T, Swizzle::PATTERN>>();
#define TESSERA_TEST_INSTANTIATE_ALL(T) \
    TESSERA_TEST_INSTANTIATE(T, none)   \
    TESSERA_TEST_INSTANTIATE(T, b32)    \
    TESSERA_TEST_INSTANTIATE(T, b64)    \
    TESSERA_TEST_INSTANTIATE(T, b128)

TESSERA_TEST_INSTANTIATE_ALL(f32)
TESSERA_TEST_INSTANTIATE_ALL(f16)
TESSERA_TEST_INSTANTIATE_ALL(bf16)
TESSERA_TEST_INSTANTIATE_ALL(tf32)
TESSERA_TEST_INSTANTIATE_ALL(f8e4m3)
TESSERA_TEST_INSTANTIATE_ALL(f8e5m2)

}  // namespace tessera::test
