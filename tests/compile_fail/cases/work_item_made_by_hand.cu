// Two clusters with the same work tile would write the same output.
// expect: "no instance of constructor "tessera::WorkItem::WorkItem""
#include "tessera/device/clc.cuh"

using namespace tessera;

__global__ void kernel(std::uint32_t* out, std::uint32_t units)
{
#ifdef NEGATIVE
    const WorkItem work(units, true);
#else
    const WorkItem work = StaticWorkQueue(units).first();
#endif
    *out = work.index();
}
