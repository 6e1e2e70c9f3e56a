/// Instantiates the Blackwell kernels for f8e4m3 and f8e5m2 inputs, also mixed.

#include "blackwell_table.cuh"

namespace tessera::kernels::detail {

BlackwellKernel blackwell_kernel_8bit(BlackwellRung rung) { return typed_blackwell_kernel<MmaKind::f8f6f4>(rung); }

}  // namespace tessera::kernels::detail
