#pragma once

// What is known about a kernel, and about a variable, of a loaded module.

#include <cstdint>
#include <string>
#include <vector>

#include "base/lanes.hpp"

namespace tessera::emulator {

/// One parameter of a kernel: its place in the parameter block.
struct ParameterLayout {
    std::uint32_t offset = 0, size = 0;
};

/// What a host may query about a kernel.
struct KernelInfo {
    std::string name;  ///< mangled, as in the PTX
    std::vector<ParameterLayout> parameters;
    std::uint32_t parameter_bytes = 0;
    std::uint32_t static_shared = 0;   ///< bytes
    std::uint32_t local_bytes = 0;     ///< per thread
    std::uint32_t registers = 0;       ///< an estimate: the largest number of live 32-bit registers, at most 255
    std::uint32_t max_threads = 1024;  ///< from .maxntid/.reqntid
    Dim3 required_cluster{0, 0, 0};    ///< .reqnctapercluster; x = 0: not given
    bool explicit_cluster = false;
    /// It, or a function that it may call, has atomics that return a value, floating-point red, bulk reductions, or
    /// volatile or acquiring loads of global memory. Where they are executed, its clusters take turns.
    bool synchronizes_clusters = false;
    bool uses_bulk_copies = false;     ///< bulk copies or tensor copies, from or to global memory
    bool uses_launch_control = false;  ///< it may cancel clusters that have not started
    bool uses_printf = false, uses_malloc = false;
    std::string load_error;  ///< if not empty: why the kernel cannot be launched (unknown instruction ...)
};

/// A module-scope variable, placed in global memory.
struct VariableInfo {
    std::uint64_t address = 0, size = 0;
    bool constant = false;
};

}  // namespace tessera::emulator
