/// Instantiates the Blackwell kernels for f16 and bf16 inputs: one CTA per instruction.

#include "blackwell_table.cuh"

namespace tessera::kernels::detail {

template BlackwellKernel blackwell_kernel<Tile128x16, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Tile128x32, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Tile128x64, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Tile128x96, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Tile128x128, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Tile128x192, MmaKind::f16>();
template BlackwellKernel blackwell_kernel<Tile128x256, MmaKind::f16>();

}  // namespace tessera::kernels::detail
