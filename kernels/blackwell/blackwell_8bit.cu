/// Instantiates the Blackwell kernels for 8-bit inputs.

#include "blackwell_table.cuh"

namespace tessera::kernels::detail {

template BlackwellKernel blackwell_kernel<Tile128x16, MmaKind::f8f6f4>();
template BlackwellKernel blackwell_kernel<Tile128x32, MmaKind::f8f6f4>();
template BlackwellKernel blackwell_kernel<Tile128x64, MmaKind::f8f6f4>();
template BlackwellKernel blackwell_kernel<Tile128x128, MmaKind::f8f6f4>();
template BlackwellKernel blackwell_kernel<Tile128x256, MmaKind::f8f6f4>();
template BlackwellKernel blackwell_kernel<Pair256x128, MmaKind::f8f6f4>();
template BlackwellKernel blackwell_kernel<Pair256x192, MmaKind::f8f6f4>();
template BlackwellKernel blackwell_kernel<Pair256x256, MmaKind::f8f6f4>();
template BlackwellKernel blackwell_kernel<Pair512x256, MmaKind::f8f6f4>();
template BlackwellKernel blackwell_kernel<Quad512x256, MmaKind::f8f6f4>();
template BlackwellKernel blackwell_kernel<Copying128x128, MmaKind::f8f6f4>();
template BlackwellKernel blackwell_kernel<CopyingPair256x256, MmaKind::f8f6f4>();

}  // namespace tessera::kernels::detail
