#pragma once

// From what the compiler registered to loaded code.

#include <span>

#include "runtime/state.hpp"

namespace tessera::emulator {

/// A kernel that can be launched on one device.
struct ReadyKernel {
    Kernel* kernel = nullptr;
    std::shared_ptr<const LoadedModule> module;
    const KernelInfo* info = nullptr;
    KernelState* state = nullptr;
    int ptx_version = 0;
};

/// The kernel that `function` means: a host function that was registered, or a cudaKernel_t or cudaFunction_t. Null if
/// none.
[[nodiscard]] Kernel* find_kernel(const void* function);

/// Loads the kernel's module on `device` if this is its first use. cudaErrorInvalidDeviceFunction for null,
/// cudaErrorInvalidResourceHandle if there is no such kernel, cudaErrorNoKernelImageForDevice, cudaErrorInvalidPtx. The
/// runtime's mutex must be held.
[[nodiscard]] cudaError_t prepare(const void* function, Device& device, ReadyKernel& ready);

/// The module of `image` on `device`. Errors are said once, on stderr.
[[nodiscard]] LoadedOn load(CodeImage& image, Device& device);

/// Address and size of a variable on `device`; cudaErrorInvalidSymbol if there is none.
[[nodiscard]] cudaError_t find_symbol(const void* symbol, Device& device, VariableInfo& variable);

/// What is asked of a launch.
struct LaunchOptions {
    dim3 grid, block;
    std::size_t shared = 0;
    bool cooperative = false;
    std::span<const cudaLaunchAttribute> attributes = {};
};

/// Checks a launch as the runtime does and makes the work of it. `arguments` may be null for a kernel without
/// parameters.
[[nodiscard]] cudaError_t make_kernel_work(const void* function, const LaunchOptions& options, void* const* arguments,
                                           Device& device, KernelWork& work);

/// Largest dynamic shared memory that a launch may ask for, as the kernel is set.
[[nodiscard]] int max_dynamic_shared(const ReadyKernel& ready, const DeviceModel& model);

}  // namespace tessera::emulator
