/// Host side of the Blackwell kernels: maps a rung and an MMA kind to a compiled kernel.

#include "blackwell_kernels.hpp"

namespace tessera::kernels {

namespace detail {

// Defined in blackwell_16bit.cu, blackwell_8bit.cu and blackwell_tf32.cu.
BlackwellKernel blackwell_kernel_16bit(BlackwellRung rung);
BlackwellKernel blackwell_kernel_8bit(BlackwellRung rung);
BlackwellKernel blackwell_kernel_tf32(BlackwellRung rung);

}  // namespace detail

const BlackwellConfig& blackwell_config(BlackwellRung rung)
{
    switch (rung) {
        case BlackwellRung::tiled: return BlackwellTiled::config;
        case BlackwellRung::swizzled: return BlackwellSwizzled::config;
        case BlackwellRung::pipelined: return BlackwellPipelined::config;
        case BlackwellRung::warp_specialized: return BlackwellWarpSpecialized::config;
        case BlackwellRung::persistent: return BlackwellPersistent::config;
        case BlackwellRung::clc: return BlackwellClc::config;
        case BlackwellRung::clc_multicast: return BlackwellClcMulticast::config;
        case BlackwellRung::cta_pair: return BlackwellCtaPair::config;
        case BlackwellRung::cta_pair_256: return BlackwellCtaPair256::config;
        case BlackwellRung::cta_pair_512: break;
    }
    return BlackwellCtaPair512::config;
}

BlackwellKernel blackwell_kernel([[maybe_unused]] BlackwellRung rung, [[maybe_unused]] MmaKind kind)
{
#ifdef TESSERA_HAS_BLACKWELL_KERNELS
    switch (kind) {
        case MmaKind::f16: return detail::blackwell_kernel_16bit(rung);
        case MmaKind::tf32: return detail::blackwell_kernel_tf32(rung);
        case MmaKind::f8f6f4: return detail::blackwell_kernel_8bit(rung);
        default: break;
    }
#endif
    return {};
}

}  // namespace tessera::kernels
