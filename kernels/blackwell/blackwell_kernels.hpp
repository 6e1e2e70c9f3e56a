#pragma once

/// The Blackwell ladder as the host sees it: which rungs there are, and the facts that a launch needs.

#include <cstddef>
#include <cstdint>

#include "blackwell_config.hpp"
#include "tessera/device/instruction_descriptor.hpp"

namespace tessera::kernels {

/// Each rung adds one idea to the one before it; blackwell_config.hpp says which. All give the same bits.
enum class BlackwellRung : std::uint8_t {
    tiled,
    swizzled,
    pipelined,
    warp_specialized,
    persistent,
    clc,
    clc_multicast,
    cta_pair,
    cta_pair_256,
    cta_pair_512,
};
inline constexpr int blackwell_rungs = 10;

/// The rung's configuration.
const BlackwellConfig& blackwell_config(BlackwellRung rung);

/// A compiled kernel. Its entry point takes one `BlackwellArguments` by value; null if this build has no code for
/// compute capability 10.
struct BlackwellKernel {
    const void* function;      // for cudaLaunchKernelExC
    std::size_t shared_bytes;  // dynamic shared memory
    int threads;               // per CTA, one-dimensional
    int copying_threads;       // more of them if an operand is copied by threads
};

/// The rung for operands of a kind: f16 (and bf16), tf32 or f8f6f4.
BlackwellKernel blackwell_kernel(BlackwellRung rung, MmaKind kind);

}  // namespace tessera::kernels
