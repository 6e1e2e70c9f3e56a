#pragma once

/// The table entry of a configuration. Entries are instantiated in several .cu files, so that they compile in parallel.

#include "blackwell_kernels.hpp"
#include "tessera/device/instruction_descriptor.hpp"

namespace tessera::kernels::detail {

/// Returns the kernel of `Config` for an MMA kind: f16 (also bf16), tf32 or f8f6f4. Defined in blackwell_table.cuh.
template <class Config, MmaKind Kind>
BlackwellKernel blackwell_kernel();

}  // namespace tessera::kernels::detail
