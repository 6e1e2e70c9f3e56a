/// The fake runtime's kernels: registration by nvcc's objects, attributes, launches; and the driver's tensor map
/// encoder.

#include <cuda.h>

#include <cstring>

#include "runtime_state.hpp"

using namespace tessera::fake;

namespace {

constexpr unsigned portable_cluster_size = 8;
constexpr unsigned most_cooperative_ctas = 100;

Kernel* find_kernel(const void* function)
{
    const auto found = kernels().find(function);
    return found == kernels().end() ? nullptr : &found->second;
}

/// Replaces cuTensorMapEncodeTiled: writes its arguments so that a test can read them, and every other bit as 1. Refuses
/// strides that the driver refuses.
CUresult encode(CUtensorMap* map, CUtensorMapDataType type, cuuint32_t rank, void* address, const cuuint64_t* extents,
                const cuuint64_t* strides, const cuuint32_t* box, const cuuint32_t* /*element_strides*/,
                CUtensorMapInterleave /*interleave*/, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
                CUtensorMapFloatOOBfill fill)
{
    std::memset(map, 0xFF, sizeof *map);
    map->opaque[0] = reinterpret_cast<std::uintptr_t>(address);
    map->opaque[2] = static_cast<cuuint64_t>(type) | cuuint64_t{rank} << 8U | static_cast<cuuint64_t>(swizzle) << 16U |
                     static_cast<cuuint64_t>(promotion) << 24U | static_cast<cuuint64_t>(fill) << 32U;
    for (cuuint32_t i = 0; i < rank; ++i) {
        map->opaque[3 + i] = extents[i];
        if (i + 1 < rank && (strides[i] % 16 != 0 || strides[i] >= cuuint64_t{1} << 40U)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        map->opaque[8 + i] = cuuint64_t{box[i]} | (i + 1 < rank ? strides[i] << 16U : 0);
    }
    return static_cast<CUresult>(runtime().encoder_status);
}

}  // namespace

extern "C" {

// nvcc's objects call these before main() and at exit.

void** __cudaRegisterFatBinary(void* /*image*/)
{
    static void* handle = nullptr;
    return &handle;
}
void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}
void __cudaUnregisterFatBinary(void** /*handle*/) {}
char __cudaInitModule(void** /*handle*/) { return 1; }
void __cudaRegisterFunction(void** /*handle*/, const char* host_function, char* /*device_function*/,
                            const char* device_name, int /*thread_limit*/, uint3* /*thread_id*/, uint3* /*block_id*/,
                            dim3* /*block*/, dim3* /*grid*/, int* /*warp_size*/)
{
    register_kernel(host_function, device_name, default_attributes());
}

// The stubs of kernel<<<...>>>() call these. The tests do not launch that way.

cudaError_t __cudaGetKernel(cudaKernel_t* /*kernel*/, const void* /*function*/) { return cudaErrorNotSupported; }
cudaError_t __cudaLaunchKernel(cudaKernel_t /*kernel*/, dim3 /*grid*/, dim3 /*block*/, void** /*arguments*/,
                               std::size_t /*shared_bytes*/, cudaStream_t /*stream*/)
{
    return cudaErrorNotSupported;
}
cudaError_t __cudaPopCallConfiguration(dim3* /*grid*/, dim3* /*block*/, std::size_t* /*shared_bytes*/, void* /*stream*/)
{
    return cudaErrorNotSupported;
}

}  // extern "C"

cudaError_t cudaFuncGetName(const char** name, const void* function)
{
    return call("cudaFuncGetName", [&] {
        const Kernel* kernel = find_kernel(function);
        if (kernel == nullptr) {
            return cudaErrorInvalidDeviceFunction;
        }
        *name = kernel->name.c_str();
        return cudaSuccess;
    });
}

cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, const void* function)
{
    return call("cudaFuncGetAttributes", [&] {
        const Kernel* kernel = find_kernel(function);
        if (kernel == nullptr) {
            return cudaErrorInvalidDeviceFunction;
        }
        *attributes = kernel->attributes;
        return cudaSuccess;
    });
}

// Code that was compiled at run time: the double has no device to run it.
cudaError_t cudaLibraryLoadData(cudaLibrary_t*, const void*, cudaJitOption*, void**, unsigned, cudaLibraryOption*,
                                void**, unsigned)
{
    return call("cudaLibraryLoadData", [] { return cudaErrorNotSupported; });
}

cudaError_t cudaLibraryGetKernel(cudaKernel_t*, cudaLibrary_t, const char*)
{
    return call("cudaLibraryGetKernel", [] { return cudaErrorNotSupported; });
}

cudaError_t cudaLibraryUnload(cudaLibrary_t)
{
    return call("cudaLibraryUnload", [] { return cudaErrorNotSupported; });
}

cudaError_t cudaFuncSetAttribute(const void* function, cudaFuncAttribute attribute, int value)
{
    return call("cudaFuncSetAttribute", [&] {
        Kernel* kernel = find_kernel(function);
        if (kernel == nullptr) {
            return cudaErrorInvalidDeviceFunction;
        }
        const int limit = (this_thread().device == t4 ? 64 : 227) * 1024;
        const auto fixed = static_cast<int>(kernel->attributes.sharedSizeBytes);
        if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 || value + fixed > limit) {
            return cudaErrorInvalidValue;
        }
        kernel->attributes.maxDynamicSharedSizeBytes = value;
        return cudaSuccess;
    });
}

cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* function, int, std::size_t)
{
    return call("cudaOccupancyMaxActiveBlocksPerMultiprocessor", [&] {
        if (find_kernel(function) == nullptr) {
            return cudaErrorInvalidDeviceFunction;
        }
        *blocks = 1;
        return cudaSuccess;
    });
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function, void** arguments)
{
    return call("cudaLaunchKernelExC", [&] {
        Runtime& state = runtime();
        const Kernel* kernel = find_kernel(function);
        StreamRecord* stream = find_stream(config->stream, "cudaLaunchKernelExC");
        if (kernel == nullptr) {
            return cudaErrorInvalidDeviceFunction;
        }
        if (stream == nullptr) {
            return cudaErrorInvalidResourceHandle;
        }
        if (stream->device != this_thread().device) {
            state.misuse("cudaLaunchKernelExC on a stream of another device than the current one");
            return cudaErrorInvalidResourceHandle;
        }
        const auto threads = std::size_t{config->blockDim.x} * config->blockDim.y * config->blockDim.z;
        if (config->gridDim.x == 0 || config->gridDim.y == 0 || config->gridDim.z == 0 || threads == 0) {
            return cudaErrorInvalidConfiguration;
        }
        if (threads > static_cast<std::size_t>(kernel->attributes.maxThreadsPerBlock)) {
            return cudaErrorLaunchOutOfResources;
        }
        const auto most_dynamic = static_cast<std::size_t>(kernel->attributes.maxDynamicSharedSizeBytes);
        const bool asked =
            kernel->attributes.maxDynamicSharedSizeBytes != default_attributes().maxDynamicSharedSizeBytes;
        if (config->dynamicSmemBytes + (asked ? 0 : kernel->attributes.sharedSizeBytes) > most_dynamic) {
            return cudaErrorInvalidValue;
        }
        Launch launch{function,
                      config->gridDim,
                      config->blockDim,
                      config->dynamicSmemBytes,
                      false,
                      dim3(1, 1, 1),
                      config->stream,
                      this_thread().device,
                      false,
                      false,
                      {}};
        for (unsigned i = 0; i < config->numAttrs; ++i) {
            if (config->attrs[i].id == cudaLaunchAttributeClusterDimension) {
                const auto& extents = config->attrs[i].val.clusterDim;
                launch.has_cluster = true;
                launch.cluster = dim3(extents.x, extents.y, extents.z);
            }
            if (config->attrs[i].id == cudaLaunchAttributeCooperative) {
                launch.cooperative = config->attrs[i].val.cooperative != 0;
            }
            if (config->attrs[i].id == cudaLaunchAttributeProgrammaticStreamSerialization) {
                launch.programmatic = config->attrs[i].val.programmaticStreamSerializationAllowed != 0;
            }
        }
        if (launch.cluster.x * launch.cluster.y * launch.cluster.z > portable_cluster_size) {
            return cudaErrorInvalidClusterSize;
        }
        if (launch.cooperative && launch.grid.x * launch.grid.y * launch.grid.z > most_cooperative_ctas) {
            return cudaErrorCooperativeLaunchTooLarge;
        }
        if (state.kept_argument_bytes > 0) {
            const auto* first = static_cast<const std::byte*>(arguments[0]);
            launch.argument.assign(first, first + state.kept_argument_bytes);
        }
        if (stream->capture != 0) {
            state.captures.at(stream->capture).launches.push_back(launch);
        } else if (state.on_launch) {
            state.on_launch(launch);
        }
        state.launches.push_back(std::move(launch));
        enqueue(*stream);
        return cudaSuccess;
    });
}

cudaError_t cudaGetDriverEntryPointByVersion(const char* symbol, void** function, unsigned /*version*/,
                                             unsigned long long /*flags*/, cudaDriverEntryPointQueryResult* result)
{
    return call("cudaGetDriverEntryPointByVersion", [&] {
        *function = nullptr;
        if (std::strcmp(symbol, "cuTensorMapEncodeTiled") == 0 && !runtime().encoder_missing) {
            *function = reinterpret_cast<void*>(&encode);
        } else if (std::strcmp(symbol, "cuPointerGetAttribute") == 0 && !runtime().pointer_attributes_missing) {
            *function = reinterpret_cast<void*>(&pool_of);
        }
        const bool found = *function != nullptr;
        *result = found ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
        return cudaSuccess;
    });
}
