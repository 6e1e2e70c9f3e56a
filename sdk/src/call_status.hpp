#pragma once

/// What a function that makes several CUDA calls answers: how it ended, and which call said so.

#include <cuda_runtime_api.h>

namespace tessera::detail {

struct CallStatus {
    cudaError_t status = cudaSuccess;
    const char* call = "";
};

}  // namespace tessera::detail
