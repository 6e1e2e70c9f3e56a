#pragma once

/// All rungs of the Blackwell kernel for one MMA kind. Each kind is instantiated in its own .cu file, so that they
/// compile in parallel.

#include "blackwell_gemm.cuh"
#include "blackwell_kernels.hpp"

namespace tessera::kernels::detail {

template <class Rung, MmaKind Kind>
BlackwellKernel blackwell_entry()
{
    return {.function = reinterpret_cast<const void*>(&blackwell_gemm<Rung, Kind>),
            .shared_bytes = sizeof(BlackwellStorage<Rung>),
            .threads = threads_without_copies,
            .copying_threads = threads_with_copies};
}

template <MmaKind Kind>
BlackwellKernel typed_blackwell_kernel(BlackwellRung rung)
{
    switch (rung) {
        case BlackwellRung::tiled: return blackwell_entry<BlackwellTiled, Kind>();
        case BlackwellRung::swizzled: return blackwell_entry<BlackwellSwizzled, Kind>();
        case BlackwellRung::pipelined: return blackwell_entry<BlackwellPipelined, Kind>();
        case BlackwellRung::warp_specialized: return blackwell_entry<BlackwellWarpSpecialized, Kind>();
        case BlackwellRung::persistent: return blackwell_entry<BlackwellPersistent, Kind>();
        case BlackwellRung::clc: return blackwell_entry<BlackwellClc, Kind>();
        case BlackwellRung::clc_multicast: return blackwell_entry<BlackwellClcMulticast, Kind>();
        case BlackwellRung::cta_pair: return blackwell_entry<BlackwellCtaPair, Kind>();
        case BlackwellRung::cta_pair_256: return blackwell_entry<BlackwellCtaPair256, Kind>();
        case BlackwellRung::cta_pair_512: break;
    }
    return blackwell_entry<BlackwellCtaPair512, Kind>();
}

}  // namespace tessera::kernels::detail
