// The peer may not have initialized its barrier yet.
// expect: "no suitable user-defined conversion from "tessera::CtaRank" to "tessera::ReadyCta" exists"
#include "tessera/device/barrier.cuh"

using namespace tessera;

__global__ void kernel()
{
    __shared__ BarrierWord<AccumulatorEmpty> word;
    const ClusterGrid cluster(2, 1);
    const auto published = publish_barriers_to_cluster([&](const BarrierInitializer& by) { by.initialize(word, 2); });
#ifdef NEGATIVE
    Barrier(word, published).arrive_at(cluster.at(0, 0));
#else
    Barrier(word, published).arrive_at(published.ready(cluster.at(0, 0)));
#endif
}
