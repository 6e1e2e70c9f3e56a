#pragma once

/// @file
/// @brief Stops a kernel where the host would throw. Private to the SDK.

#include "tessera/detail/language.hpp"

#ifdef __CUDACC__
namespace tessera::detail {

__device__ __forceinline__ void trap_unless(bool condition)
{
    if (!condition) {
        __trap();
    }
}

}  // namespace tessera::detail
#endif
