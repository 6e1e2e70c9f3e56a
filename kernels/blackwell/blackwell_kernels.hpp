#pragma once

/// Host side of the Blackwell kernels: the list of rungs, and what a launch needs to know about each.

#include <cstddef>
#include <cstdint>

#include "blackwell_config.hpp"
#include "tessera/device/instruction_descriptor.hpp"

namespace tessera::kernels {

/// Each rung adds one idea to the rung before it (see blackwell_config.hpp). All give the same bits.
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

/// Returns the rung's configuration.
const BlackwellConfig& blackwell_config(BlackwellRung rung);

/// A compiled kernel. Its only parameter is a `BlackwellArguments` by value. `function` is null if this build has no
/// code for compute capability 10.
struct BlackwellKernel {
    const void* function;      // for cudaLaunchKernelExC
    std::size_t shared_bytes;  // dynamic shared memory per CTA
    int threads;               // per CTA, one-dimensional
    int copying_threads;       // per CTA, if an operand needs the fallback load
};

/// Returns the rung for an MMA kind: f16 (also bf16), tf32 or f8f6f4.
BlackwellKernel blackwell_kernel(BlackwellRung rung, MmaKind kind);

}  // namespace tessera::kernels
