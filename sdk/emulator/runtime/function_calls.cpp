// Kernels: attributes, occupancy.

#include <cuda_runtime_api.h>

#include <algorithm>

#include "runtime/call.hpp"
#include "runtime/kernels.hpp"

using namespace tessera::emulator;

namespace {

/// Runs `body(ready, device)` with the kernel, loaded on the current device.
template <class Body>
cudaError_t with_kernel(const char* name, const void* function, Body&& body)
{
    return call(name, [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        ReadyKernel ready;
        Device& device = current_device();
        const cudaError_t status = prepare(function, device, ready);
        return status != cudaSuccess ? status : body(ready, device);
    });
}

cudaError_t set_attribute(const ReadyKernel& ready, const DeviceModel& model, cudaFuncAttribute attribute, int value)
{
    KernelState& state = *ready.state;
    switch (attribute) {
        case cudaFuncAttributeMaxDynamicSharedMemorySize:
            if (value < 0 || static_cast<unsigned>(value) + ready.info->static_shared > model.shared_per_cta_optin) {
                return cudaErrorInvalidValue;
            }
            state.max_dynamic_shared = value;
            return cudaSuccess;
        case cudaFuncAttributePreferredSharedMemoryCarveout:
            if (value < -1 || value > 100) {
                return cudaErrorInvalidValue;
            }
            state.carveout = value;
            return cudaSuccess;
        case cudaFuncAttributeNonPortableClusterSizeAllowed:
            if (model.max_cluster == 0) {
                return cudaErrorInvalidValue;
            }
            state.non_portable_cluster = value != 0;
            return cudaSuccess;
        case cudaFuncAttributeClusterSchedulingPolicyPreference: state.scheduling_policy = value; return cudaSuccess;
        case cudaFuncAttributeRequiredClusterWidth: state.required_cluster[0] = value; return cudaSuccess;
        case cudaFuncAttributeRequiredClusterHeight: state.required_cluster[1] = value; return cudaSuccess;
        case cudaFuncAttributeRequiredClusterDepth: state.required_cluster[2] = value; return cudaSuccess;
        default: return cudaErrorInvalidValue;
    }
}

/// CTAs per cluster of a launch configuration; zero without clusters.
Dim3 cluster_of(const cudaLaunchConfig_t& config, const KernelInfo& info)
{
    for (unsigned i = 0; i < config.numAttrs; ++i) {
        if (config.attrs[i].id == cudaLaunchAttributeClusterDimension) {
            const auto& dimension = config.attrs[i].val.clusterDim;
            return {dimension.x, dimension.y, dimension.z};
        }
    }
    return info.required_cluster.x != 0 ? info.required_cluster : Dim3{1, 1, 1};
}

unsigned threads_of(const cudaLaunchConfig_t& config)
{
    return config.blockDim.x * config.blockDim.y * config.blockDim.z;
}

/// Hardware places a cluster into one GPC, and the number of SMs per GPC differs from chip to chip. This assumes GPCs
/// as large as the largest cluster, which gives an upper bound.
std::uint64_t active_clusters(const DeviceModel& model, unsigned resident, std::uint64_t cluster)
{
    const unsigned gpc = std::max(1U, model.max_cluster);
    const std::uint64_t whole = model.multiprocessors / gpc;
    const std::uint64_t rest = model.multiprocessors % gpc;
    return cluster == 0 ? 0 : whole * (std::uint64_t{gpc} * resident / cluster) + rest * resident / cluster;
}

}  // namespace

extern "C" {

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function)
{
    return with_kernel("cudaFuncGetAttributes", function, [&](const ReadyKernel& ready, Device& device) -> cudaError_t {
        if (attributes == nullptr) {
            return cudaErrorInvalidValue;
        }
        const KernelInfo& info = *ready.info;
        const KernelState& state = *ready.state;
        *attributes = {};
        attributes->sharedSizeBytes = info.static_shared;
        attributes->localSizeBytes = info.local_bytes;
        attributes->maxThreadsPerBlock = static_cast<int>(info.max_threads);
        attributes->numRegs = static_cast<int>(info.registers);
        attributes->ptxVersion = ready.ptx_version;  // CUB reads from this how it was compiled
        attributes->binaryVersion = static_cast<int>(device.model->capability());
        attributes->maxDynamicSharedSizeBytes = max_dynamic_shared(ready, *device.model);
        attributes->preferredShmemCarveout = state.carveout;
        attributes->clusterDimMustBeSet = info.explicit_cluster ? 1 : 0;
        attributes->requiredClusterWidth = static_cast<int>(info.required_cluster.x);
        attributes->requiredClusterHeight = static_cast<int>(info.required_cluster.y);
        attributes->requiredClusterDepth = static_cast<int>(info.required_cluster.z);
        attributes->clusterSchedulingPolicyPreference = state.scheduling_policy;
        attributes->nonPortableClusterSizeAllowed = state.non_portable_cluster ? 1 : 0;
        return cudaSuccess;
    });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value)
{
    return with_kernel("cudaFuncSetAttribute", function, [&](const ReadyKernel& ready, Device& device) {
        return set_attribute(ready, *device.model, attribute, value);
    });
}

cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, cudaFuncAttribute attribute, int value, int index)
{
    return call("cudaKernelSetAttributeForDevice", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        Device* device = find_device(index);
        if (device == nullptr) {
            return cudaErrorInvalidDevice;
        }
        ReadyKernel ready;
        const cudaError_t status = prepare(kernel, *device, ready);
        return status != cudaSuccess ? status : set_attribute(ready, *device->model, attribute, value);
    });
}

cudaError_t cudaFuncSetCacheConfig(const void* function, cudaFuncCache /*config*/)
{
    return with_kernel("cudaFuncSetCacheConfig", function, [](const ReadyKernel&, Device&) { return cudaSuccess; });
}

cudaError_t cudaFuncSetSharedMemConfig(const void* function, cudaSharedMemConfig /*config*/)
{
    return with_kernel("cudaFuncSetSharedMemConfig", function, [](const ReadyKernel&, Device&) { return cudaSuccess; });
}

cudaError_t cudaFuncGetName(const char** name, const void* function)
{
    return call("cudaFuncGetName", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        if (name == nullptr || function == nullptr) {
            return cudaErrorInvalidValue;
        }
        const Kernel* kernel = find_kernel(function);
        if (kernel == nullptr) {
            return cudaErrorInvalidDeviceFunction;
        }
        *name = kernel->name.c_str();
        return cudaSuccess;
    });
}

cudaError_t cudaFuncGetParamInfo(const void* function, size_t index, size_t* offset, size_t* size)
{
    return with_kernel("cudaFuncGetParamInfo", function, [&](const ReadyKernel& ready, Device&) -> cudaError_t {
        if (offset == nullptr || index >= ready.info->parameters.size()) {
            return cudaErrorInvalidValue;
        }
        *offset = ready.info->parameters[index].offset;
        if (size != nullptr) {
            *size = ready.info->parameters[index].size;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, const void* symbol)
{
    return with_kernel("cudaGetFuncBySymbol", symbol, [&](const ReadyKernel& ready, Device&) -> cudaError_t {
        if (function == nullptr) {
            return cudaErrorInvalidValue;
        }
        *function = reinterpret_cast<cudaFunction_t>(ready.kernel);
        return cudaSuccess;
    });
}

cudaError_t cudaGetKernel(cudaKernel_t* kernel, const void* symbol)
{
    return call("cudaGetKernel", [&]() -> cudaError_t {
        const std::scoped_lock lock(Runtime::get().mutex);
        Kernel* found = find_kernel(symbol);
        if (kernel == nullptr || found == nullptr) {
            return kernel == nullptr ? cudaErrorInvalidValue : cudaErrorInvalidDeviceFunction;
        }
        *kernel = reinterpret_cast<cudaKernel_t>(found);
        return cudaSuccess;
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* count, const void* function, int threads,
                                                                   size_t shared, unsigned flags)
{
    return with_kernel("cudaOccupancyMaxActiveBlocksPerMultiprocessor", function,
                       [&](const ReadyKernel& ready, Device& device) -> cudaError_t {
                           if (count == nullptr || threads <= 0 || flags > cudaOccupancyDisableCachingOverride) {
                               return cudaErrorInvalidValue;
                           }
                           const DeviceModel& model = *device.model;
                           const bool fits = static_cast<unsigned>(threads) <= ready.info->max_threads &&
                                             shared + ready.info->static_shared <= model.shared_per_cta_optin;
                           *count =
                               fits ? static_cast<int>(resident_ctas(model, *ready.info, static_cast<unsigned>(threads),
                                                                     static_cast<std::uint32_t>(shared)))
                                    : 0;
                           return cudaSuccess;
                       });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* count, const void* function, int threads, size_t shared)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, threads, shared,
                                                                  cudaOccupancyDefault);
}

cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t* shared, const void* function, int ctas, int threads)
{
    return with_kernel(
        "cudaOccupancyAvailableDynamicSMemPerBlock", function,
        [&](const ReadyKernel& ready, Device& device) -> cudaError_t {
            const DeviceModel& model = *device.model;
            if (shared == nullptr || ctas <= 0 || threads <= 0 ||
                resident_ctas(model, *ready.info, static_cast<unsigned>(threads), 0) < static_cast<unsigned>(ctas)) {
                return cudaErrorInvalidValue;
            }
            const std::uint64_t share = model.shared_per_multiprocessor / static_cast<unsigned>(ctas);
            const std::uint64_t taken = ready.info->static_shared;
            const std::uint64_t most = model.shared_per_cta_optin - taken;
            *shared = share > taken ? std::min(share - taken, most) / 128 * 128 : 0;
            return cudaSuccess;
        });
}

cudaError_t cudaOccupancyMaxPotentialClusterSize(int* size, const void* function, const cudaLaunchConfig_t* config)
{
    return with_kernel(
        "cudaOccupancyMaxPotentialClusterSize", function, [&](const ReadyKernel& ready, Device& device) -> cudaError_t {
            const DeviceModel& model = *device.model;
            if (size == nullptr || config == nullptr) {
                return cudaErrorInvalidValue;
            }
            if (model.max_cluster == 0) {
                return cudaErrorNotSupported;
            }
            const unsigned resident = resident_ctas(model, *ready.info, threads_of(*config),
                                                    static_cast<std::uint32_t>(config->dynamicSmemBytes));
            *size = resident == 0                       ? 0
                    : ready.state->non_portable_cluster ? static_cast<int>(model.max_cluster)
                                                        : static_cast<int>(model.portable_cluster);
            return cudaSuccess;
        });
}

cudaError_t cudaOccupancyMaxActiveClusters(int* count, const void* function, const cudaLaunchConfig_t* config)
{
    return with_kernel(
        "cudaOccupancyMaxActiveClusters", function, [&](const ReadyKernel& ready, Device& device) -> cudaError_t {
            const DeviceModel& model = *device.model;
            if (count == nullptr || config == nullptr) {
                return cudaErrorInvalidValue;
            }
            const std::uint64_t cluster = cluster_of(*config, *ready.info).count();
            const unsigned limit = ready.state->non_portable_cluster ? model.max_cluster : model.portable_cluster;
            if (model.max_cluster == 0 || cluster == 0 || cluster > limit) {
                return cudaErrorInvalidClusterSize;
            }
            if (config->dynamicSmemBytes > static_cast<std::size_t>(max_dynamic_shared(ready, model))) {
                return cudaErrorInvalidValue;
            }
            const unsigned resident = resident_ctas(model, *ready.info, threads_of(*config),
                                                    static_cast<std::uint32_t>(config->dynamicSmemBytes));
            *count = static_cast<int>(active_clusters(model, resident, cluster));
            return cudaSuccess;
        });
}

}  // extern "C"
