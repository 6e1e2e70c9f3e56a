/// Instantiates the Blackwell kernels for f16 and bf16 inputs: CTA pairs, and those with the fallback load.

#include "blackwell_table.cuh"

namespace tessera::kernels::detail {

template BlackwellKernel blackwell_kernel<Pair256x64, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Pair256x96, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Pair256x128, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Pair256x192, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Pair256x256, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Pair512x256, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Quad512x256, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Copying128x128, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<CopyingPair256x256, MmaKind::f16>();

}  // namespace tessera::kernels::detail
