/// Instantiates the Blackwell kernels for f16 and bf16 inputs.

#include "blackwell_table.cuh"

namespace tessera::kernels::detail {

BlackwellKernel blackwell_kernel_16bit(BlackwellRung rung) { return typed_blackwell_kernel<MmaKind::f16>(rung); }

}  // namespace tessera::kernels::detail
