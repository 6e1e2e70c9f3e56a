// publish_barriers() says nothing of the peer's barriers.
// expect: "class "tessera::BarriersPublished" has no member "ready""
#include "tessera/device/barrier.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ BarrierWord<AccumulatorEmpty> word;
    const ClusterGrid cluster(2, 1);
    const auto initialize = [&](const BarrierInitializer& by) { by.initialize(word, 2); };
#ifdef NEGATIVE
    const auto published = publish_barriers(initialize);
#else
    const auto published = publish_barriers_to_cluster(initialize);
#endif
    Barrier(word, published).arrive_at(published.ready(cluster.at(0, 0)));
}
