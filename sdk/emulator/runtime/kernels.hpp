#pragma once

// From the compiler's registration to loaded code.

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

/// The kernel for `function`: a registered host function, a cudaKernel_t or a cudaFunction_t. Null if there is none.
[[nodiscard]] Kernel* find_kernel(const void* function);

/// Loads the kernel's module on `device` at its first use. Returns cudaErrorInvalidDeviceFunction for null,
/// cudaErrorInvalidResourceHandle if there is no such kernel, cudaErrorNoKernelImageForDevice, or cudaErrorInvalidPtx.
/// Requires the runtime's mutex.
[[nodiscard]] cudaError_t prepare(const void* function, Device& device, ReadyKernel& ready);

/// The module of `image` on `device`. Errors are printed once, to stderr.
[[nodiscard]] LoadedOn load(CodeImage& image, Device& device);

/// Address and size of a variable on `device`; cudaErrorInvalidSymbol if there is none.
[[nodiscard]] cudaError_t find_symbol(const void* symbol, Device& device, VariableInfo& variable);

/// The options of a launch.
struct LaunchOptions {
    dim3 grid, block;
    std::size_t shared = 0;
    bool cooperative = false;
    std::span<const cudaLaunchAttribute> attributes = {};
};

/// Checks a launch like the runtime and makes its work. `arguments` may be null for a kernel without parameters.
[[nodiscard]] cudaError_t make_kernel_work(const void* function, const LaunchOptions& options, void* const* arguments,
                                           Device& device, KernelWork& work);

/// Largest dynamic shared memory that a launch may request with the kernel's current settings.
[[nodiscard]] int max_dynamic_shared(const ReadyKernel& ready, const DeviceModel& model);

}  // namespace tessera::emulator
