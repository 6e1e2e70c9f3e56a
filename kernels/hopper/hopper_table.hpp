#pragma once

/// The table entry of a configuration. Entries are instantiated in several .cu files, so that they compile in parallel.

#include "hopper_config.hpp"
#include "hopper_kernels.hpp"

namespace tessera::kernels::detail {

/// Returns the kernel of `Config` for inputs of this size. Defined in hopper_table.cuh.
template <class Config, int ElementBytes>
HopperKernel hopper_kernel();

}  // namespace tessera::kernels::detail
