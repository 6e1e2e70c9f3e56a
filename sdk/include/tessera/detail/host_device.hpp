#pragma once

/// @file
/// @brief Marks what host and device code can call: `__host__ __device__` for nvcc, nothing for g++ and clang++.
/// Private to the SDK's headers.
#include "tessera/detail/language.hpp"

/// @cond
#ifdef __CUDACC__
#define TESSERA_DETAIL_HOST_DEVICE __host__ __device__
#else
#define TESSERA_DETAIL_HOST_DEVICE
#endif
/// @endcond
