#pragma once

/// Result of a function that makes several CUDA calls: the status, and the name of the call that returned it.

#include <cuda_runtime_api.h>

namespace tessera::detail {

struct CallStatus {
    cudaError_t status = cudaSuccess;
    const char* call = "";
};

}  // namespace tessera::detail
