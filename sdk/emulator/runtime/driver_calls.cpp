// The CUDA driver calls that programs of the runtime use: here those for devices and contexts, on top of the runtime's
// public functions. Compiled twice: into libcudart.so.13, for cudaGetDriverEntryPoint, and into libcuda.so.1, for programs
// that link the driver.

#include <cuda.h>
#include <cudaProfiler.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <utility>

#include "runtime/driver_call.hpp"
#include "runtime/driver_entry.hpp"
#include "runtime/state.hpp"

using namespace tessera::emulator;

extern "C" tessera::emulator::ThreadState* tessera_emulator_thread_state();  // device_calls.cpp

namespace {

ThreadState& this_thread() { return *tessera_emulator_thread_state(); }

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

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
    return on_device(device, [] { return cudaDeviceReset(); });
}

CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags)
{
    return on_device(device, [&] { return cudaSetDeviceFlags(flags); });
}

CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer)
{
    return on_runtime([&] { return cudaDeviceCanAccessPeer(can, device, peer); });
}

CUresult cuDeviceGetP2PAttribute(int* value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to)
{
    return on_runtime(
        [&] { return cudaDeviceGetP2PAttribute(value, static_cast<cudaDeviceP2PAttr>(attribute), from, to); });
}

CUresult cuDeviceGetPCIBusId(char* id, int length, CUdevice device)
{
    return on_runtime([&] { return cudaDeviceGetPCIBusId(id, length, device); });
}

CUresult cuDeviceGetByPCIBusId(CUdevice* device, const char* id)
{
    return on_runtime([&] { return cudaDeviceGetByPCIBusId(device, id); });
}

// A thread has a stack of contexts; the runtime's calls see the top. Here it begins with the primary context of device 0
// instead of none, as if the thread had called the runtime.

CUresult cuCtxGetDevice(CUdevice* device)
{
    if (!this_thread().has_context) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return on_runtime([&] { return cudaGetDevice(device); });
}

CUresult cuCtxGetCurrent(CUcontext* context)
{
    if (context == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!this_thread().has_context) {
        *context = nullptr;
        return CUDA_SUCCESS;
    }
    int device = 0;
    const CUresult status = cuCtxGetDevice(&device);
    if (status == CUDA_SUCCESS) {
        *context = context_of(device);
    }
    return status;
}

CUresult cuCtxPopCurrent_v2(CUcontext* context)
{
    ThreadState& thread = this_thread();
    if (!thread.has_context) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    if (context != nullptr) {
        *context = context_of(thread.device);
    }
    if (thread.outer_contexts.empty()) {
        thread.has_context = false;
    } else {
        thread.device = thread.outer_contexts.back();
        thread.outer_contexts.pop_back();
    }
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    if (context == nullptr) {
        return this_thread().has_context ? cuCtxPopCurrent_v2(nullptr) : CUDA_SUCCESS;
    }
    return on_runtime([&] { return cudaSetDevice(device_of(context)); });
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    if (context == nullptr) {
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    ThreadState& thread = this_thread();
    const bool has_outer = thread.has_context;
    const int outer = thread.device;
    const CUresult status = on_runtime([&] { return cudaSetDevice(device_of(context)); });
    if (status == CUDA_SUCCESS && has_outer) {
        thread.outer_contexts.push_back(outer);
    }
    return status;
}

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

CUresult cuCtxGetFlags(unsigned* flags)
{
    return on_runtime([&] { return cudaGetDeviceFlags(flags); });
}

CUresult cuCtxGetId(CUcontext context, unsigned long long* id)
{
    if (id == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const CUresult status = context == nullptr ? cuCtxGetCurrent(&context) : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS) {
        *id = static_cast<unsigned long long>(device_of(context)) + 1;
    }
    return status;
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned flags)
{
    return on_runtime([&] { return cudaDeviceEnablePeerAccess(device_of(peer), flags); });
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    return on_runtime([&] { return cudaDeviceDisablePeerAccess(device_of(peer)); });
}

CUresult cuProfilerStart()
{
    return on_runtime([] { return cudaProfilerStart(); });
}

CUresult cuProfilerStop()
{
    return on_runtime([] { return cudaProfilerStop(); });
}

/// The driver's undocumented tables: there is none. NVRTC asks for one, goes on without it, and crashes where this function
/// is missing.
CUresult cuGetExportTable(const void** table, const CUuuid* id)
{
    if (table == nullptr || id == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *table = nullptr;
    return CUDA_ERROR_NOT_FOUND;
}

CUresult cuGetProcAddress_v2(const char* name, void** address, int version, cuuint64_t /*flags*/,
                             CUdriverProcAddressQueryResult* result)
{
    if (name == nullptr || address == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *address = find_driver_function(name, version);
    if (result != nullptr) {
        *result = *address == nullptr ? CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND : CU_GET_PROC_ADDRESS_SUCCESS;
    }
    return *address == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // extern "C"
