// Launches of kernels and of host functions.

#include <cuda_runtime_api.h>

#include "runtime/call.hpp"
#include "runtime/kernels.hpp"
#include "runtime/stream_work.hpp"

using namespace tessera::emulator;

namespace {

constexpr CallKind launch_call{};

/// Records the events requested by launch attributes.
cudaError_t record_attribute_events(Stream& stream, std::span<const cudaLaunchAttribute> attributes)
{
    for (const cudaLaunchAttribute& attribute : attributes) {
        cudaEvent_t event = nullptr;
        if (attribute.id == cudaLaunchAttributeProgrammaticEvent) {
            event = attribute.val.programmaticEvent.event;
        } else if (attribute.id == cudaLaunchAttributeLaunchCompletionEvent) {
            event = attribute.val.launchCompletionEvent.event;
        }
        if (event != nullptr) {
            if (const cudaError_t status = record_event(stream, event, false); status != cudaSuccess) {
                return status;
            }
        }
    }
    return cudaSuccess;
}

cudaError_t launch_on(const void* function, const LaunchOptions& options, void* const* arguments, cudaStream_t handle)
{
    const std::scoped_lock lock(Runtime::get().mutex);
    Stream* stream = find_stream(handle);
    if (stream == nullptr) {
        return cudaErrorInvalidResourceHandle;
    }
    KernelWork work;
    // A kernel runs on the stream's device, which must be current, because modules and settings belong to it.
    if (stream->device != &current_device()) {
        return cudaErrorInvalidResourceHandle;
    }
    if (const cudaError_t status = make_kernel_work(function, options, arguments, *stream->device, work);
        status != cudaSuccess) {
        return status;
    }
    if (const cudaError_t status = submit(*stream, std::move(work)); status != cudaSuccess) {
        return status;
    }
    return record_attribute_events(*stream, options.attributes);
}

cudaError_t launch_config(const char* name, const cudaLaunchConfig_t* config, const void* function, void** arguments,
                          bool is_per_thread)
{
    return call(name, launch_call, [&]() -> cudaError_t {
        if (config == nullptr || (config->numAttrs != 0 && config->attrs == nullptr)) {
            return cudaErrorInvalidValue;
        }
        const LaunchOptions options{.grid = config->gridDim,
                                    .block = config->blockDim,
                                    .shared = config->dynamicSmemBytes,
                                    .attributes = {config->attrs, config->numAttrs}};
        return launch_on(function, options, arguments, is_per_thread ? per_thread(config->stream) : config->stream);
    });
}

cudaError_t launch_plain(const char* name, const void* function, dim3 grid, dim3 block, void** arguments,
                         std::size_t shared, cudaStream_t stream, bool cooperative = false)
{
    return call(name, launch_call, [&] {
        return launch_on(function, {.grid = grid, .block = block, .shared = shared, .cooperative = cooperative},
                         arguments, stream);
    });
}

cudaError_t launch_host(cudaStream_t handle, cudaHostFn_t function, void* argument)
{
    return call("cudaLaunchHostFunc", [&]() -> cudaError_t {
        if (function == nullptr) {
            return cudaErrorInvalidValue;
        }
        Stream* stream = find_stream(handle);
        return stream == nullptr ? cudaErrorInvalidResourceHandle : submit(*stream, HostWork{function, argument});
    });
}

}  // namespace

extern "C" {

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                               cudaStream_t stream)
{
    return launch_plain("cudaLaunchKernel", kernel, grid, block, arguments, shared, stream);
}

cudaError_t __cudaLaunchKernel_ptsz(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments, size_t shared,
                                    cudaStream_t stream)
{
    return launch_plain("cudaLaunchKernel", kernel, grid, block, arguments, shared, per_thread(stream));
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                             cudaStream_t stream)
{
    return launch_plain("cudaLaunchKernel", function, grid, block, arguments, shared, stream);
}

cudaError_t cudaLaunchKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                                  cudaStream_t stream)
{
    return launch_plain("cudaLaunchKernel", function, grid, block, arguments, shared, per_thread(stream));
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block, void** arguments, size_t shared,
                                        cudaStream_t stream)
{
    return launch_plain("cudaLaunchCooperativeKernel", function, grid, block, arguments, shared, stream, true);
}

cudaError_t cudaLaunchCooperativeKernel_ptsz(const void* function, dim3 grid, dim3 block, void** arguments,
                                             size_t shared, cudaStream_t stream)
{
    return launch_plain("cudaLaunchCooperativeKernel", function, grid, block, arguments, shared, per_thread(stream),
                        true);
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments)
{
    return launch_config("cudaLaunchKernelExC", config, function, arguments, false);
}

cudaError_t cudaLaunchKernelExC_ptsz(const cudaLaunchConfig_t* config, const void* function, void** arguments)
{
    return launch_config("cudaLaunchKernelExC", config, function, arguments, true);
}

cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* argument)
{
    return launch_host(stream, function, argument);
}

cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* argument)
{
    return launch_host(per_thread(stream), function, argument);
}

}  // extern "C"
