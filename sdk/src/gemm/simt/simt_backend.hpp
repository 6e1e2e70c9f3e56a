#pragma once

/// The SIMT kernels, which run on every device.

#include "gemm/backend.hpp"
#include "kernels/simt/simt_kernels.hpp"

namespace tessera::detail {

/// Returns the kernel of a SIMT variant, with the tile that suits the problem.
kernels::SimtKernel simt_kernel_of(Variant variant, const GemmProblem& problem, const DeviceProperties& device);

}  // namespace tessera::detail
