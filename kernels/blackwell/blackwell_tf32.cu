/// Instantiates the Blackwell kernels for tf32 inputs.

#include "blackwell_table.cuh"

namespace tessera::kernels::detail {

BlackwellKernel blackwell_kernel_tf32(BlackwellRung rung) { return typed_blackwell_kernel<MmaKind::tf32>(rung); }

}  // namespace tessera::kernels::detail
