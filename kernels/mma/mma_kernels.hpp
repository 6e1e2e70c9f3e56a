#pragma once

/// Host side of the mma.sync kernels: the list of compiled configurations.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "mma_config.hpp"
#include "tessera/element.hpp"

namespace tessera::kernels {

/// One configuration for one pair of input types. A kernel's only parameter is an `MmaArguments` by value.
struct MmaKernel {
    const MmaConfig* config;  // has static storage
    std::string_view name;    // stable: tuning caches contain it
    /// For cudaLaunchKernelExC, by [A is K-major][B is K-major]; null where there is no code for these orders.
    const void* functions[2][2];
};

/// Returns the configurations for these inputs, in a fixed order. Empty if this build has no code of them.
std::span<const MmaKernel> mma_kernels(InputTypes input);

/// Code that this build has.
struct MmaCode {
    int capability;  // that it was compiled for
    bool machine_code;
    bool ptx;
};

/// Returns what the kernels for these inputs were compiled for.
/// @param f16_sums  of f16: those with sums in f16, which have code of fewer architectures
std::span<const MmaCode> mma_code(InputTypes input, bool f16_sums);

/// Returns true if a device of this compute capability (10 * major + minor) has the instructions.
constexpr bool has_mma_instructions(InputTypes input, int compute_capability)
{
    if (input == InputTypes(ElementType::f32)) {
        return false;
    }
    const int needed = is_float8(input) ? 89 : input.a == ElementType::f16 ? 75 : 80;
    return compute_capability >= needed;
}

}  // namespace tessera::kernels
