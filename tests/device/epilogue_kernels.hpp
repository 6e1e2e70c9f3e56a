#pragma once

/// Kernels that test the operations of the epilogue one by one.

#include <cstdint>

#include "kernels.hpp"
#include "tessera/epilogue_kind.hpp"

namespace tessera::test {

/// Adds to *different for how many of the floats with the bits 0, stride, 2 * stride ... (`count` of them, modulo 2^32)
/// the activation is wrong. SiLU and sigmoid must have the bits of a division that is rounded correctly; tanh and
/// gelu_tanh must be within their error bound of the value in fp64.
Kernel<Activation, std::uint32_t, std::uint64_t, unsigned long long*> check_activation_kernel();

}  // namespace tessera::test
