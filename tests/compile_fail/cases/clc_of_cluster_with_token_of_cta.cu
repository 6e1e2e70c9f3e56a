// An answer of cluster launch control is written to all CTAs of the cluster.
// expect: "no instance of constructor "tessera::ClcWorkQueue<ClusterSize, Slots>::ClcWorkQueue"
#include "tessera/device/clc.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ ClcStorage<2> clc;
    const auto initialize = [&](const BarrierInitializer& by) { clc.initialize(by, 3); };
#ifdef NEGATIVE
    const auto published = publish_barriers(initialize);
#else
    const auto published = publish_barriers_to_cluster(initialize);
#endif
    ClcWorkQueue<2, 2> queue(clc, published);
    queue.next_of_warp();
}
