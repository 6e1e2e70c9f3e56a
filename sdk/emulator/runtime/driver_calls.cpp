// The CUDA driver calls that programs of the runtime use (except those for memory and tensor maps), on top of the runtime's
// public functions. Compiled twice: into libcudart.so.13, for cudaGetDriverEntryPoint, and into libcuda.so.1, for programs
// that link the driver.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include "runtime/driver_call.hpp"
#include "runtime/driver_entry.hpp"

using namespace tessera::emulator;

namespace {

constexpr std::pair<int, const char*> error_names[] = {
#define TESSERA_DRIVER_ERROR(code, name) {code, #name},
#include "runtime/driver_errors.def"
#undef TESSERA_DRIVER_ERROR
};

}  // namespace

extern "C" {

CUresult cuInit(unsigned flags)
{
    int count = 0;
    return flags != 0 ? CUDA_ERROR_INVALID_VALUE : on_runtime([&] { return cudaGetDeviceCount(&count); });
}

CUresult cuDriverGetVersion(int* version)
{
    return on_runtime([&] { return cudaDriverGetVersion(version); });
}

CUresult cuGetErrorName(CUresult error, const char** name)
{
    const auto* found = std::find_if(std::begin(error_names), std::end(error_names),
                                     [&](const auto& entry) { return entry.first == static_cast<int>(error); });
    if (name == nullptr || found == std::end(error_names)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *name = found->second;
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char** text)
{
    const char* name = nullptr;
    if (text == nullptr || cuGetErrorName(error, &name) != CUDA_SUCCESS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *text = cudaGetErrorString(static_cast<cudaError_t>(error));
    return CUDA_SUCCESS;
}

// Devices and contexts.

CUresult cuDeviceGetCount(int* count)
{
    return on_runtime([&] { return cudaGetDeviceCount(count); });
}

CUresult cuDeviceGet(CUdevice* device, int ordinal)
{
    int count = 0;
    const CUresult status = cuDeviceGetCount(&count);
    if (status != CUDA_SUCCESS) {
        return status;
    }
    if (device == nullptr || ordinal < 0 || ordinal >= count) {
        return device == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    }
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device)
{
    return on_runtime([&] { return cudaDeviceGetAttribute(value, static_cast<cudaDeviceAttr>(attribute), device); });
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device)
{
    cudaDeviceProp properties;
    const CUresult status = on_runtime([&] { return cudaGetDeviceProperties(&properties, device); });
    if (status == CUDA_SUCCESS && length > 0) {
        std::strncpy(name, properties.name, static_cast<std::size_t>(length) - 1);
        name[length - 1] = '\0';
    }
    return status;
}

CUresult cuDeviceTotalMem_v2(size_t* bytes, CUdevice device)
{
    cudaDeviceProp properties;
    const CUresult status = on_runtime([&] { return cudaGetDeviceProperties(&properties, device); });
    if (status == CUDA_SUCCESS) {
        *bytes = properties.totalGlobalMem;
    }
    return status;
}

CUresult cuDeviceGetUuid_v2(CUuuid* uuid, CUdevice device)
{
    cudaDeviceProp properties;
    const CUresult status = on_runtime([&] { return cudaGetDeviceProperties(&properties, device); });
    if (status == CUDA_SUCCESS) {
        *uuid = properties.uuid;
    }
    return status;
}

CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device)
{
    const CUresult status = cuDeviceGetAttribute(major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    return status != CUDA_SUCCESS ? status
                                  : cuDeviceGetAttribute(minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device)
{
    CUdevice known = 0;
    const CUresult status = cuDeviceGet(&known, device);
    if (status == CUDA_SUCCESS) {
        *context = context_of(device);
    }
    return status;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUdevice known = 0;
    return cuDeviceGet(&known, device);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned* flags, int* active)
{
    CUdevice known = 0;
    const CUresult status = cuDeviceGet(&known, device);
    if (status == CUDA_SUCCESS) {
        *flags = 0;
        *active = 1;
    }
    return status;
}

CUresult cuCtxGetDevice(CUdevice* device)
{
    return on_runtime([&] { return cudaGetDevice(device); });
}

CUresult cuCtxGetCurrent(CUcontext* context)
{
    int device = 0;
    const CUresult status = cuCtxGetDevice(&device);
    if (status == CUDA_SUCCESS) {
        *context = context_of(device);
    }
    return status;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    if (context == nullptr) {
        return CUDA_SUCCESS;
    }
    return on_runtime([&] { return cudaSetDevice(static_cast<int>(cast<std::uintptr_t>(context) - 1)); });
}

CUresult cuCtxPushCurrent_v2(CUcontext context) { return cuCtxSetCurrent(context); }

CUresult cuCtxPopCurrent_v2(CUcontext* context) { return context == nullptr ? CUDA_SUCCESS : cuCtxGetCurrent(context); }

CUresult cuCtxSynchronize()
{
    return on_runtime([] { return cudaDeviceSynchronize(); });
}

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest)
{
    return on_runtime([&] { return cudaDeviceGetStreamPriorityRange(least, greatest); });
}

CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
    return on_runtime([&] { return cudaDeviceSetLimit(static_cast<cudaLimit>(limit), value); });
}

CUresult cuCtxGetLimit(size_t* value, CUlimit limit)
{
    return on_runtime([&] { return cudaDeviceGetLimit(value, static_cast<cudaLimit>(limit)); });
}

// Code and launches. A module is a library, a function is a kernel.

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
    return on_runtime([&] {
        return cudaLibraryLoadFromFile(cast<cudaLibrary_t*>(module), path, nullptr, nullptr, 0, nullptr, nullptr, 0);
    });
}

CUresult cuModuleUnload(CUmodule module) { return cuLibraryUnload(cast<CUlibrary>(module)); }

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name)
{
    CUkernel kernel = nullptr;
    const CUresult status = cuLibraryGetKernel(&kernel, cast<CUlibrary>(module), name);
    return status == CUDA_SUCCESS ? cuKernelGetFunction(function, kernel) : status;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* size, CUmodule module, const char* name)
{
    return cuLibraryGetGlobal(address, size, cast<CUlibrary>(module), name);
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value)
{
    return on_runtime([&] { return cudaFuncSetAttribute(function, static_cast<cudaFuncAttribute>(attribute), value); });
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config)
{
    return on_runtime([&] { return cudaFuncSetCacheConfig(function, static_cast<cudaFuncCache>(config)); });
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function)
{
    cudaFuncAttributes all;
    const CUresult status = on_runtime([&] { return cudaFuncGetAttributes(&all, function); });
    if (status != CUDA_SUCCESS) {
        return status;
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
        default: return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void** arguments, void** extra)
{
    if (config == nullptr || (arguments == nullptr && extra != nullptr)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    cudaLaunchConfig_t runtime_config{};
    runtime_config.gridDim = dim3(config->gridDimX, config->gridDimY, config->gridDimZ);
    runtime_config.blockDim = dim3(config->blockDimX, config->blockDimY, config->blockDimZ);
    runtime_config.dynamicSmemBytes = config->sharedMemBytes;
    runtime_config.stream = stream_of(config->hStream);
    runtime_config.attrs = reinterpret_cast<cudaLaunchAttribute*>(config->attrs);
    runtime_config.numAttrs = config->numAttrs;
    static_assert(sizeof(cudaLaunchAttribute) == sizeof(CUlaunchAttribute));
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

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* count, CUfunction function, int threads, size_t shared)
{
    return on_runtime([&] { return cudaOccupancyMaxActiveBlocksPerMultiprocessor(count, function, threads, shared); });
}

CUresult cuOccupancyMaxActiveClusters(int* count, CUfunction function, const CUlaunchConfig* config)
{
    cudaLaunchConfig_t runtime_config{};
    runtime_config.gridDim = dim3(config->gridDimX, config->gridDimY, config->gridDimZ);
    runtime_config.blockDim = dim3(config->blockDimX, config->blockDimY, config->blockDimZ);
    runtime_config.dynamicSmemBytes = config->sharedMemBytes;
    runtime_config.attrs = reinterpret_cast<cudaLaunchAttribute*>(config->attrs);
    runtime_config.numAttrs = config->numAttrs;
    return on_runtime([&] { return cudaOccupancyMaxActiveClusters(count, function, &runtime_config); });
}

// Streams and events.

CUresult cuStreamCreate(CUstream* stream, unsigned flags)
{
    return on_runtime([&] { return cudaStreamCreateWithFlags(stream, flags); });
}

CUresult cuStreamDestroy_v2(CUstream stream)
{
    return on_runtime([&] { return cudaStreamDestroy(stream); });
}

CUresult cuStreamSynchronize(CUstream stream)
{
    return on_runtime([&] { return cudaStreamSynchronize(stream); });
}

CUresult cuStreamQuery(CUstream stream)
{
    return on_runtime([&] { return cudaStreamQuery(stream); });
}

CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status)
{
    static_assert(sizeof(CUstreamCaptureStatus) == sizeof(cudaStreamCaptureStatus));
    return on_runtime(
        [&] { return cudaStreamIsCapturing(stream_of(stream), reinterpret_cast<cudaStreamCaptureStatus*>(status)); });
}

CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags)
{
    return on_runtime([&] { return cudaStreamWaitEvent(stream, event, flags); });
}

CUresult cuEventCreate(CUevent* event, unsigned flags)
{
    return on_runtime([&] { return cudaEventCreateWithFlags(event, flags); });
}

CUresult cuEventDestroy_v2(CUevent event)
{
    return on_runtime([&] { return cudaEventDestroy(event); });
}

CUresult cuEventRecord(CUevent event, CUstream stream)
{
    return on_runtime([&] { return cudaEventRecord(event, stream); });
}

CUresult cuEventSynchronize(CUevent event)
{
    return on_runtime([&] { return cudaEventSynchronize(event); });
}

CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end)
{
    return on_runtime([&] { return cudaEventElapsedTime(milliseconds, start, end); });
}

CUresult cuGetProcAddress_v2(const char* name, void** address, int /*version*/, cuuint64_t /*flags*/,
                             CUdriverProcAddressQueryResult* result)
{
    if (name == nullptr || address == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = find_driver_function(name);
    if (result != nullptr) {
        *result = *address == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
    }
    return *address == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // extern "C"
