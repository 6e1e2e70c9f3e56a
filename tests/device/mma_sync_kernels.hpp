#pragma once

/// Kernels that multiply one tile with mma.sync: one warp loads it to shared memory, and its fragments from there.

#include "kernels.hpp"
#include "tessera/device/smem_descriptor.hpp"
#include "tessera/swizzle.hpp"

namespace tessera::test {

inline constexpr unsigned mma_m = 32;
inline constexpr unsigned mma_n = 24;
inline constexpr unsigned mma_line_bytes = 128;  // of K, or of M and N in transposed tiles

template <class T>
inline constexpr unsigned mma_k = mma_line_bytes / sizeof(T);

/// d (mma_m, mma_n) = a * b^T, for a (mma_m, mma_k) and b (mma_n, mma_k), all row-major.
template <class A, class B, class D>
using MmaSyncProduct = Kernel<DeviceSpan<const A>, DeviceSpan<const B>, DeviceSpan<D>>;

/// @tparam K          of an instruction
/// @tparam MajorAxis  of the tiles in shared memory
/// @tparam Pattern    of the tiles in shared memory
template <class A, class B, class D, unsigned K, Major MajorAxis, Swizzle Pattern>
MmaSyncProduct<A, B, D> mma_sync_kernel();

}  // namespace tessera::test
