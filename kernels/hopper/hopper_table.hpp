#pragma once

/// The entry of each configuration, instantiated in several .cu files so that they compile side by side.

#include "hopper_config.hpp"
#include "hopper_kernels.hpp"

namespace tessera::kernels::detail {

/// The kernel of `Config` for A and B of elements of this size. Defined in hopper_table.cuh.
template <class Config, int ElementBytes>
HopperKernel hopper_kernel();

}  // namespace tessera::kernels::detail
