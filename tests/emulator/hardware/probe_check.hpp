#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace tessera::probe {

/// Ends the program with a message if a CUDA call has failed.
inline void check(cudaError_t status, const std::string& what)
{
    if (status != cudaSuccess) {
        std::fprintf(stderr, "%s: %s\n", what.c_str(), cudaGetErrorString(status));
        std::exit(1);
    }
}

}  // namespace tessera::probe
