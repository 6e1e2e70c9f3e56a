#pragma once

/// Marks what is callable from both sides of a CUDA program. Private to the SDK's headers: plain g++ and clang++ see
/// nothing, nvcc sees `__host__ __device__`.
#include "tessera/detail/language.hpp"

#ifdef __CUDACC__
#define TESSERA_DETAIL_HOST_DEVICE __host__ __device__
#else
#define TESSERA_DETAIL_HOST_DEVICE
#endif
