// The MMA loop of the configuration Pair256x256, with the types of the device layer. raw_loop.cu is its twin without them.

#include "kernels/blackwell/blackwell_roles.cuh"

using namespace tessera;
using namespace tessera::kernels;

extern "C" __global__ void __launch_bounds__(256, 1) main_loop(const __grid_constant__ BlackwellArguments arguments)
{
    using Config = Pair256x256;
    using Storage = BlackwellStorage<Config>;
    extern __shared__ __align__(1024) std::byte shared_memory[];
    Storage& storage = *reinterpret_cast<Storage*>(shared_memory);
    const std::uint32_t warp = __shfl_sync(0xFFFFFFFFU, threadIdx.x / 32, 0);
    const ClusterGrid cluster(2, 1);
    const auto published = publish_barriers_to_cluster([&](const BarrierInitializer& by) {
        storage.stages.initialize(by);
        storage.accumulators.initialize(by, {.producers = 1, .consumers = 8});
    });
    Tmem<Unallocated, 512, CtaGroup::pair> unallocated(storage.tensor_memory);
    auto tensor_memory = std::move(unallocated).allocate(warp == 5, published);
    if (warp == 5 && cluster.row() == 0) {
        StageMultiplier<Config, MmaKind::f16, decltype(tensor_memory)> multiplier(arguments, storage, published,
                                                                                  cluster, tensor_memory);
        multiplier.multiply(arguments.k_steps, [](std::uint32_t) {});
    }
    __syncwarp();
    const PairFinished finished = tensor_memory.finish_pair();
    std::move(tensor_memory).release(warp == 5, finished);
}
