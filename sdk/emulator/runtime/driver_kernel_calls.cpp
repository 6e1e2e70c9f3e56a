// Driver calls for code and launches, on top of the runtime's public functions. A module is a library, a function is a
// kernel. Compiled twice, as driver_calls.cpp.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <utility>

#include "runtime/driver_call.hpp"

using namespace tessera::emulator;

extern "C" cudaLibrary_t tessera_emulator_library_of(cudaKernel_t kernel);  // library_calls.cpp

namespace {

CUresult pick_attribute(int* value, CUfunction_attribute attribute, const cudaFuncAttributes& all)
{
    if (value == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    switch (attribute) {
        case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK: *value = all.maxThreadsPerBlock; break;
        case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES: *value = static_cast<int>(all.sharedSizeBytes); break;
        case CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES: *value = static_cast<int>(all.constSizeBytes); break;
        case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES: *value = static_cast<int>(all.localSizeBytes); break;
        case CU_FUNC_ATTRIBUTE_NUM_REGS: *value = all.numRegs; break;
        case CU_FUNC_ATTRIBUTE_PTX_VERSION: *value = all.ptxVersion; break;
        case CU_FUNC_ATTRIBUTE_BINARY_VERSION: *value = all.binaryVersion; break;
        case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES: *value = all.maxDynamicSharedSizeBytes; break;
        case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: *value = all.preferredShmemCarveout; break;
        case CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED: *value = all.nonPortableClusterSizeAllowed; break;
        case CU_FUNC_ATTRIBUTE_CACHE_MODE_CA: *value = all.cacheModeCA; break;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SIZE_MUST_BE_SET: *value = all.clusterDimMustBeSet; break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH: *value = all.requiredClusterWidth; break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT: *value = all.requiredClusterHeight; break;
        case CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH: *value = all.requiredClusterDepth; break;
        case CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
            *value = all.clusterSchedulingPolicyPreference;
            break;
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

cudaLaunchConfig_t runtime_config_of(const CUlaunchConfig& config)
{
    static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
    cudaLaunchConfig_t result{};
    result.gridDim = dim3(config.gridDimX, config.gridDimY, config.gridDimZ);
    result.blockDim = dim3(config.blockDimX, config.blockDimY, config.blockDimZ);
    result.dynamicSmemBytes = config.sharedMemBytes;
    result.stream = stream_of(config.hStream);
    result.attrs = reinterpret_cast<cudaLaunchAttribute*>(config.attrs);
    result.numAttrs = config.numAttrs;
    return result;
}

}  // namespace

extern "C" {

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* /*options*/, void** /*option_values*/,
                           unsigned /*option_count*/, CUlibraryOption* /*library_options*/,
                           void** /*library_option_values*/, unsigned /*library_option_count*/)
{
    return on_runtime([&] {
        return cudaLibraryLoadData(cast<cudaLibrary_t*>(library), code, nullptr, nullptr, 0, nullptr, nullptr, 0);
    });
}

CUresult cuLibraryUnload(CUlibrary library)
{
    return on_runtime([&] { return cudaLibraryUnload(cast<cudaLibrary_t>(library)); });
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name)
{
    return on_runtime(
        [&] { return cudaLibraryGetKernel(cast<cudaKernel_t*>(kernel), cast<cudaLibrary_t>(library), name); });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* size, CUlibrary library, const char* name)
{
    return on_runtime(
        [&] { return cudaLibraryGetGlobal(cast<void**>(address), size, cast<cudaLibrary_t>(library), name); });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* /*options*/,
                               void** /*option_values*/, unsigned /*option_count*/,
                               CUlibraryOption* /*library_options*/, void** /*library_option_values*/,
                               unsigned /*library_option_count*/)
{
    return on_runtime([&] {
        return cudaLibraryLoadFromFile(cast<cudaLibrary_t*>(library), path, nullptr, nullptr, 0, nullptr, nullptr, 0);
    });
}

CUresult cuLibraryGetManaged(CUdeviceptr* address, size_t* size, CUlibrary library, const char* name)
{
    return on_runtime(
        [&] { return cudaLibraryGetManaged(cast<void**>(address), size, cast<cudaLibrary_t>(library), name); });
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library)
{
    return on_runtime([&] { return cudaLibraryGetKernelCount(count, cast<cudaLibrary_t>(library)); });
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library)
{
    return on_runtime(
        [&] { return cudaLibraryEnumerateKernels(cast<cudaKernel_t*>(kernels), count, cast<cudaLibrary_t>(library)); });
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library)
{
    unsigned kernels = 0;
    const CUresult status = module == nullptr ? CUDA_ERROR_INVALID_VALUE : cuLibraryGetKernelCount(&kernels, library);
    if (status == CUDA_SUCCESS) {
        *module = cast<CUmodule>(library);
    }
    return status;
}

/// A function is a kernel that is loaded: one that the emulated device cannot run is refused here.
CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel)
{
    if (function == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    cudaFuncAttributes attributes;
    const CUresult status = on_runtime([&] { return cudaFuncGetAttributes(&attributes, kernel); });
    if (status == CUDA_SUCCESS) {
        *function = cast<CUfunction>(kernel);
    }
    return status;
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device)
{
    cudaFuncAttributes all;
    const CUresult status = on_device(device, [&] { return cudaFuncGetAttributes(&all, kernel); });
    return status == CUDA_SUCCESS ? pick_attribute(value, attribute, all) : status;
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device)
{
    return on_runtime([&] {
        return cudaKernelSetAttributeForDevice(cast<cudaKernel_t>(kernel), static_cast<cudaFuncAttribute>(attribute),
                                               value, device);
    });
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device)
{
    return on_device(device, [&] { return cudaFuncSetCacheConfig(kernel, static_cast<cudaFuncCache>(config)); });
}

CUresult cuKernelGetName(const char** name, CUkernel kernel)
{
    return on_runtime([&] { return cudaFuncGetName(name, kernel); });
}

CUresult cuKernelGetParamInfo(CUkernel kernel, size_t index, size_t* offset, size_t* size)
{
    return on_runtime([&] { return cudaFuncGetParamInfo(kernel, index, offset, size); });
}

/// Kernels of the program itself belong to no library that has a handle.
CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel)
{
    const char* name = nullptr;
    const CUresult status = library == nullptr ? CUDA_ERROR_INVALID_VALUE : cuKernelGetName(&name, kernel);
    if (status == CUDA_SUCCESS) {
        *library = cast<CUlibrary>(tessera_emulator_library_of(cast<cudaKernel_t>(kernel)));
        return *library == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
    }
    return status;
}

CUresult cuModuleLoadData(CUmodule* module, const void* code)
{
    return cuLibraryLoadData(cast<CUlibrary*>(module), code, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

CUresult cuModuleLoadDataEx(CUmodule* module, const void* code, unsigned /*count*/, CUjit_option* /*options*/,
                            void** /*values*/)
{
    return cuModuleLoadData(module, code);
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* code) { return cuModuleLoadData(module, code); }

CUresult cuModuleLoad(CUmodule* module, const char* path)
{
    return cuLibraryLoadFromFile(cast<CUlibrary*>(module), path, nullptr, nullptr, 0, nullptr, nullptr, 0);
}

CUresult cuModuleUnload(CUmodule module) { return cuLibraryUnload(cast<CUlibrary>(module)); }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name)
{
    CUkernel kernel = nullptr;
    const CUresult status = cuLibraryGetKernel(&kernel, cast<CUlibrary>(module), name);
    return status == CUDA_SUCCESS ? cuKernelGetFunction(function, kernel) : status;
}

CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule module)
{
    return cuLibraryGetKernelCount(count, cast<CUlibrary>(module));
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* size, CUmodule module, const char* name)
{
    return cuLibraryGetGlobal(address, size, cast<CUlibrary>(module), name);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    return on_runtime([&] { return cudaFuncSetAttribute(function, static_cast<cudaFuncAttribute>(attribute), value); });
}

CUresult cuFuncGetName(const char** name, CUfunction function)
{
    return on_runtime([&] { return cudaFuncGetName(name, function); });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function)
{
    return cuKernelGetLibrary(cast<CUlibrary*>(module), cast<CUkernel>(function));
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* size)
{
    return cuKernelGetParamInfo(cast<CUkernel>(function), index, offset, size);
}

/// cuKernelGetFunction loads, so that every function is loaded.
CUresult cuFuncLoad(CUfunction function)
{
    const char* name = nullptr;
    return cuFuncGetName(&name, function);
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function)
{
    const CUresult status = state == nullptr ? CUDA_ERROR_INVALID_VALUE : cuFuncLoad(function);
    if (status == CUDA_SUCCESS) {
        *state = CU_FUNCTION_LOADING_STATE_LOADED;
    }
    return status;
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    return on_runtime([&] { return cudaFuncSetCacheConfig(function, static_cast<cudaFuncCache>(config)); });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function)
{
    cudaFuncAttributes all;
    const CUresult status = on_runtime([&] { return cudaFuncGetAttributes(&all, function); });
    return status == CUDA_SUCCESS ? pick_attribute(value, attribute, all) : status;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra)
{
    if (config == nullptr || (arguments == nullptr && extra != nullptr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const cudaLaunchConfig_t runtime_config = runtime_config_of(*config);
    return on_runtime([&] { return cudaLaunchKernelExC(&runtime_config, function, arguments); });
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                        unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void** arguments,
                        void** extra)
{
    CUlaunchConfig config{};
    config.gridDimX = grid_x;
    config.gridDimY = grid_y;
    config.gridDimZ = grid_z;
    config.blockDimX = block_x;
    config.blockDimY = block_y;
    config.blockDimZ = block_z;
    config.sharedMemBytes = shared;
    config.hStream = stream;
    return cuLaunchKernelEx(&config, function, arguments, extra);
}

CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                                   CUstream stream, void** arguments)
{
    return on_runtime([&] {
        return cudaLaunchCooperativeKernel(function, dim3(grid_x, grid_y, grid_z), dim3(block_x, block_y, block_z),
                                           arguments, shared, stream_of(stream));
    });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, CUfunction function, int threads, size_t shared)
{
    return on_runtime([&] { return cudaOccupancyMaxActiveBlocksPerMultiprocessor(count, function, threads, shared); });
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* count, CUfunction function, int threads,
                                                              size_t shared, unsigned flags)
{
    return on_runtime([&] {
        return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(count, function, threads, shared, flags);
    });
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t* bytes, CUfunction function, int blocks, int threads)
{
    return on_runtime([&] { return cudaOccupancyAvailableDynamicSMemPerBlock(bytes, function, blocks, threads); });
}

/// The block size, a multiple of a warp, with the most threads resident on an SM, and the number of blocks that
/// fills the device.
CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int* blocks, int* threads, CUfunction function,
                                                   CUoccupancyB2DSize shared_of, size_t shared, int limit,
                                                   unsigned flags)
{
    if (blocks == nullptr || threads == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return on_runtime([&] {
        cudaFuncAttributes kernel;
        int device = 0, processors = 0, warp = 0, best = 0;
        cudaError_t status = cudaFuncGetAttributes(&kernel, function);
        status = status == cudaSuccess ? cudaGetDevice(&device) : status;
        for (const auto& [value, attribute] :
             {std::pair{&processors, cudaDevAttrMultiProcessorCount}, std::pair{&warp, cudaDevAttrWarpSize}}) {
            status = status == cudaSuccess ? cudaDeviceGetAttribute(value, attribute, device) : status;
        }
        const int largest = limit > 0 ? std::min(limit, kernel.maxThreadsPerBlock) : kernel.maxThreadsPerBlock;
        for (int size = largest; status == cudaSuccess && size > 0; size = (size - 1) / warp * warp) {
            int resident = 0;
            status = cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
                &resident, function, size, shared_of == nullptr ? shared : shared_of(size), flags);
            if (status == cudaSuccess && resident * size > best) {
                best = resident * size;
                *threads = size;
                *blocks = resident * processors;
            }
        }
        return status;
    });
}

CUresult cuOccupancyMaxPotentialBlockSize(int* blocks, int* threads, CUfunction function, CUoccupancyB2DSize shared_of,
                                          size_t shared, int limit)
{
    return cuOccupancyMaxPotentialBlockSizeWithFlags(blocks, threads, function, shared_of, shared, limit,
                                                     CU_OCCUPANCY_DEFAULT);
}

CUresult cuOccupancyMaxActiveClusters(int* count, CUfunction function, const CUlaunchConfig* config)
{
    if (config == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const cudaLaunchConfig_t runtime_config = runtime_config_of(*config);
    return on_runtime([&] { return cudaOccupancyMaxActiveClusters(count, function, &runtime_config); });
}

CUresult cuOccupancyMaxPotentialClusterSize(int* size, CUfunction function, const CUlaunchConfig* config)
{
    if (config == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const cudaLaunchConfig_t runtime_config = runtime_config_of(*config);
    return on_runtime([&] { return cudaOccupancyMaxPotentialClusterSize(size, function, &runtime_config); });
}

}  // extern "C"
