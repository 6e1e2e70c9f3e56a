/// Instantiates the Blackwell kernels for tf32 inputs.

#include "blackwell_table.cuh"

namespace tessera::kernels::detail {

template BlackwellKernel blackwell_kernel<Tile128x32, MmaKind::tf32>();
template BlackwellKernel blackwell_kernel<Tile128x64, MmaKind::tf32>();
template BlackwellKernel blackwell_kernel<Tile128x128, MmaKind::tf32>();
template BlackwellKernel blackwell_kernel<Pair256x128, MmaKind::tf32>();
template BlackwellKernel blackwell_kernel<Pair256x256, MmaKind::tf32>();
template BlackwellKernel blackwell_kernel<Pair512x256, MmaKind::tf32>();
template BlackwellKernel blackwell_kernel<Quad512x256, MmaKind::tf32>();
template BlackwellKernel blackwell_kernel<Copying128x128, MmaKind::tf32>();
template BlackwellKernel blackwell_kernel<CopyingPair256x256, MmaKind::tf32>();

}  // namespace tessera::kernels::detail
