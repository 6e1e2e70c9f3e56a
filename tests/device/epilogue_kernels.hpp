#pragma once

/// Kernels that test the operations of the epilogue one by one.

#include <cstdint>

#include "kernels.hpp"

namespace tessera::test {

/// Adds to *different how many of the floats with the bits 0, stride, 2 * stride ... (`count` of them, modulo 2^32) have
/// another SiLU than x / (1 + exp(-x)) with a division that is rounded correctly.
Kernel<std::uint32_t, std::uint64_t, unsigned long long*> compare_silu_kernel();

}  // namespace tessera::test
