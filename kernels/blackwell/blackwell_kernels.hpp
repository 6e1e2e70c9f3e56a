#pragma once

/// Host side of the Blackwell kernels: the list of compiled configurations, and what a launch needs to know about each.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "blackwell_config.hpp"

namespace tessera::kernels {

/// One compiled configuration. The kernel's only parameter is a `BlackwellArguments` by value.
struct BlackwellKernel {
    const BlackwellConfig* config;  // has static storage
    const void* function;           // for cudaLaunchKernelExC
    std::size_t shared_bytes;       // dynamic shared memory per CTA

    std::string_view name() const noexcept { return config->name; }  // stable: tuning caches contain it
};

/// Returns the configurations for inputs of `element_bytes` (1, 2 or 4), in a fixed order. Empty if this build has no
/// code of them.
std::span<const BlackwellKernel> blackwell_kernels(std::size_t element_bytes);

/// Returns true if this build has code for devices of this compute capability: 10 or 11.
bool has_blackwell_code(int compute_capability_major);

}  // namespace tessera::kernels
