// Device properties. Values that a model does not have are those of the CUDA programming guide's table of compute
// capabilities.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <cstring>
#include <optional>

#include "runtime/call.hpp"

using namespace tessera::emulator;

namespace {

constexpr int max_texture_1d = 131072;
constexpr int max_texture_1d_linear = 1 << 28;
constexpr int max_texture_3d = 16384;
constexpr int max_texture_gather = 32768;
constexpr int max_layered = 32768;
constexpr int max_layers = 2048;
constexpr int max_cubemap = 32768;
constexpr int max_cubemap_layers = 2046;
constexpr int max_linear_pitch = 2097120;

bool is_data_center(const DeviceModel& model) { return model.major >= 8; }

std::optional<int> texture_attribute(cudaDeviceAttr attribute, const DeviceModel& model)
{
    const int max_2d = 131072;
    const int max_2d_height = 65536;
    switch (attribute) {
        case cudaDevAttrMaxTexture1DWidth:
        case cudaDevAttrMaxTexture2DWidth: return max_texture_1d;
        case cudaDevAttrMaxTexture2DHeight: return max_2d_height;
        case cudaDevAttrMaxTexture3DWidth:
        case cudaDevAttrMaxTexture3DHeight:
        case cudaDevAttrMaxTexture3DDepth:
        case cudaDevAttrMaxSurface3DWidth:
        case cudaDevAttrMaxSurface3DHeight:
        case cudaDevAttrMaxSurface3DDepth: return max_texture_3d;
        case cudaDevAttrMaxTexture3DWidthAlt:
        case cudaDevAttrMaxTexture3DHeightAlt: return max_texture_3d / 2;
        case cudaDevAttrMaxTexture3DDepthAlt: return max_texture_3d * 2;
        case cudaDevAttrMaxTexture2DLayeredWidth:
        case cudaDevAttrMaxTexture2DLayeredHeight:
        case cudaDevAttrMaxTexture1DLayeredWidth:
        case cudaDevAttrMaxSurface1DWidth:
        case cudaDevAttrMaxSurface1DLayeredWidth:
        case cudaDevAttrMaxSurface2DLayeredWidth:
        case cudaDevAttrMaxSurface2DLayeredHeight:
        case cudaDevAttrMaxTexture1DMipmappedWidth:
        case cudaDevAttrMaxTexture2DMipmappedWidth:
        case cudaDevAttrMaxTexture2DMipmappedHeight: return max_layered;
        case cudaDevAttrMaxTexture2DLayeredLayers:
        case cudaDevAttrMaxTexture1DLayeredLayers:
        case cudaDevAttrMaxSurface1DLayeredLayers:
        case cudaDevAttrMaxSurface2DLayeredLayers: return max_layers;
        case cudaDevAttrMaxTexture2DGatherWidth:
        case cudaDevAttrMaxTexture2DGatherHeight: return max_texture_gather;
        case cudaDevAttrMaxTextureCubemapWidth:
        case cudaDevAttrMaxTextureCubemapLayeredWidth:
        case cudaDevAttrMaxSurfaceCubemapWidth:
        case cudaDevAttrMaxSurfaceCubemapLayeredWidth: return max_cubemap;
        case cudaDevAttrMaxTextureCubemapLayeredLayers:
        case cudaDevAttrMaxSurfaceCubemapLayeredLayers: return max_cubemap_layers;
        case cudaDevAttrMaxSurface2DWidth: return max_2d;
        case cudaDevAttrMaxSurface2DHeight: return max_2d_height;
        case cudaDevAttrMaxTexture1DLinearWidth: return max_texture_1d_linear;
        case cudaDevAttrMaxTexture2DLinearWidth: return max_texture_1d;
        case cudaDevAttrMaxTexture2DLinearHeight: return 65000;
        case cudaDevAttrMaxTexture2DLinearPitch: return max_linear_pitch;
        case cudaDevAttrTextureAlignment:
        case cudaDevAttrSurfaceAlignment: return 512;
        case cudaDevAttrTexturePitchAlignment: return 32;
        default: static_cast<void>(model); return std::nullopt;
    }
}

std::optional<int> feature_attribute(cudaDeviceAttr attribute, const DeviceModel& model)
{
    switch (attribute) {
        case cudaDevAttrGpuOverlap:
        case cudaDevAttrCanMapHostMemory:
        case cudaDevAttrConcurrentKernels:
        case cudaDevAttrUnifiedAddressing:
        case cudaDevAttrStreamPrioritiesSupported:
        case cudaDevAttrGlobalL1CacheSupported:
        case cudaDevAttrLocalL1CacheSupported:
        case cudaDevAttrManagedMemory:
        case cudaDevAttrConcurrentManagedAccess:
        case cudaDevAttrComputePreemptionSupported:
        case cudaDevAttrCanUseHostPointerForRegisteredMem:
        case cudaDevAttrCooperativeLaunch:
        case cudaDevAttrHostRegisterSupported:
        case cudaDevAttrMemoryPoolsSupported:
        case cudaDevAttrTimelineSemaphoreInteropSupported: return 1;
        case cudaDevAttrEccEnabled: return 1;
        case cudaDevAttrClusterLaunch: return model.max_cluster != 0 ? 1 : 0;
        // Not emulated, so programs must not use it: pageable access, IPC, RDMA, graphics interoperation.
        case cudaDevAttrKernelExecTimeout:
        case cudaDevAttrIntegrated:
        case cudaDevAttrTccDriver:
        case cudaDevAttrIsMultiGpuBoard:
        case cudaDevAttrHostNativeAtomicSupported:
        case cudaDevAttrPageableMemoryAccess:
        case cudaDevAttrCanFlushRemoteWrites:
        case cudaDevAttrPageableMemoryAccessUsesHostPageTables:
        case cudaDevAttrDirectManagedMemAccessFromHost:
        case cudaDevAttrSparseCudaArraySupported:
        case cudaDevAttrHostRegisterReadOnlySupported:
        case cudaDevAttrGPUDirectRDMASupported:
        case cudaDevAttrGPUDirectRDMAFlushWritesOptions:
        case cudaDevAttrGPUDirectRDMAWritesOrdering:
        case cudaDevAttrMemoryPoolSupportedHandleTypes:
        case cudaDevAttrDeferredMappingCudaArraySupported:
        case cudaDevAttrIpcEventSupport:
        case cudaDevAttrNumaConfig:
        case cudaDevAttrMpsEnabled:
        case cudaDevAttrD3D12CigSupported:
        case cudaDevAttrVulkanCigSupported:
        case cudaDevAttrGpuPciDeviceId:
        case cudaDevAttrGpuPciSubsystemId:
        case cudaDevAttrHostNumaMemoryPoolsSupported:
        case cudaDevAttrHostNumaMultinodeIpcSupported:
        case cudaDevAttrHostMemoryPoolsSupported:
        case cudaDevAttrOnlyPartialHostNativeAtomicSupported:
        case cudaDevAttrReserved92:
        case cudaDevAttrReserved93:
        case cudaDevAttrReserved94:
        case cudaDevAttrReserved96:
        case cudaDevAttrReserved122:
        case cudaDevAttrReserved123:
        case cudaDevAttrReserved124:
        case cudaDevAttrReserved127:
        case cudaDevAttrReserved128:
        case cudaDevAttrReserved129:
        case cudaDevAttrReserved132:
        case cudaDevAttrReserved141:
        case cudaDevAttrReserved145: return 0;
        case cudaDevAttrNumaId: return -1;
        case cudaDevAttrHostNumaId: return 0;
        case cudaDevAttrMemSyncDomainCount: return model.major >= 9 ? 4 : 1;
        default: return std::nullopt;
    }
}

std::optional<int> size_attribute(cudaDeviceAttr attribute, const DeviceModel& model, int device)
{
    constexpr std::uint64_t int_max = 0x7FFFFFFF;
    switch (attribute) {
        case cudaDevAttrMaxThreadsPerBlock:
        case cudaDevAttrMaxBlockDimX:
        case cudaDevAttrMaxBlockDimY: return 1024;
        case cudaDevAttrMaxBlockDimZ: return 64;
        case cudaDevAttrMaxGridDimX: return static_cast<int>(int_max);
        case cudaDevAttrMaxGridDimY:
        case cudaDevAttrMaxGridDimZ: return 65535;
        case cudaDevAttrMaxSharedMemoryPerBlock: return static_cast<int>(model.shared_per_cta);
        case cudaDevAttrTotalConstantMemory: return 65536;
        case cudaDevAttrWarpSize: return 32;
        case cudaDevAttrMaxPitch: return static_cast<int>(int_max);
        case cudaDevAttrMaxRegistersPerBlock: return 65536;
        case cudaDevAttrClockRate: return static_cast<int>(model.clock);
        case cudaDevAttrMultiProcessorCount: return static_cast<int>(model.multiprocessors);
        case cudaDevAttrComputeMode: return cudaComputeModeDefault;
        case cudaDevAttrPciBusId: return device + 1;
        case cudaDevAttrPciDeviceId:
        case cudaDevAttrPciDomainId: return 0;
        case cudaDevAttrMultiGpuBoardGroupID: return device;
        case cudaDevAttrMemoryClockRate: return static_cast<int>(model.memory_clock);
        case cudaDevAttrGlobalMemoryBusWidth: return static_cast<int>(model.memory_bus_bits);
        case cudaDevAttrL2CacheSize: return static_cast<int>(model.l2_cache);
        case cudaDevAttrMaxThreadsPerMultiProcessor: return static_cast<int>(model.threads_per_multiprocessor);
        case cudaDevAttrAsyncEngineCount: return 3;
        case cudaDevAttrComputeCapabilityMajor: return static_cast<int>(model.major);
        case cudaDevAttrComputeCapabilityMinor: return static_cast<int>(model.minor);
        case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return static_cast<int>(model.shared_per_multiprocessor);
        case cudaDevAttrMaxRegistersPerMultiprocessor: return static_cast<int>(model.registers_per_multiprocessor);
        case cudaDevAttrSingleToDoublePrecisionPerfRatio: return is_data_center(model) ? 2 : 32;
        case cudaDevAttrMaxSharedMemoryPerBlockOptin: return static_cast<int>(model.shared_per_cta_optin);
        case cudaDevAttrMaxBlocksPerMultiprocessor: return static_cast<int>(model.ctas_per_multiprocessor);
        case cudaDevAttrMaxPersistingL2CacheSize:
            return is_data_center(model) ? static_cast<int>(model.l2_cache / 16 * 10) : 0;
        case cudaDevAttrMaxAccessPolicyWindowSize: return is_data_center(model) ? 128 << 20 : 0;
        case cudaDevAttrReservedSharedMemoryPerBlock: return static_cast<int>(model.reserved_shared_per_cta);
        default: return std::nullopt;
    }
}

std::optional<int> attribute_of(cudaDeviceAttr attribute, const Device& device)
{
    if (const auto size = size_attribute(attribute, *device.model, device.index)) {
        return size;
    }
    const auto feature = feature_attribute(attribute, *device.model);
    return feature ? feature : texture_attribute(attribute, *device.model);
}

void fill_uuid(char (&bytes)[16], const Device& device)
{
    std::memcpy(bytes, "tessera-emulated", 16);
    bytes[14] = static_cast<char>(device.model->capability());
    bytes[15] = static_cast<char>(device.index);
}

cudaDeviceProp properties_of(const Device& device)
{
    const DeviceModel& model = *device.model;
    const auto get = [&](cudaDeviceAttr attribute) { return attribute_of(attribute, device).value_or(0); };
    const auto get_size = [&](cudaDeviceAttr attribute) { return static_cast<std::size_t>(get(attribute)); };
    cudaDeviceProp p{};
    std::strncpy(p.name, model.name.c_str(), sizeof p.name - 1);
    fill_uuid(p.uuid.bytes, device);
    p.totalGlobalMem = model.memory;
    p.sharedMemPerBlock = model.shared_per_cta;
    p.regsPerBlock = get(cudaDevAttrMaxRegistersPerBlock);
    p.warpSize = get(cudaDevAttrWarpSize);
    p.memPitch = get_size(cudaDevAttrMaxPitch);
    p.maxThreadsPerBlock = get(cudaDevAttrMaxThreadsPerBlock);
    p.maxThreadsDim[0] = get(cudaDevAttrMaxBlockDimX);
    p.maxThreadsDim[1] = get(cudaDevAttrMaxBlockDimY);
    p.maxThreadsDim[2] = get(cudaDevAttrMaxBlockDimZ);
    p.maxGridSize[0] = get(cudaDevAttrMaxGridDimX);
    p.maxGridSize[1] = get(cudaDevAttrMaxGridDimY);
    p.maxGridSize[2] = get(cudaDevAttrMaxGridDimZ);
    p.totalConstMem = get_size(cudaDevAttrTotalConstantMemory);
    p.major = get(cudaDevAttrComputeCapabilityMajor);
    p.minor = get(cudaDevAttrComputeCapabilityMinor);
    p.textureAlignment = get_size(cudaDevAttrTextureAlignment);
    p.texturePitchAlignment = get_size(cudaDevAttrTexturePitchAlignment);
    p.multiProcessorCount = get(cudaDevAttrMultiProcessorCount);
    p.canMapHostMemory = get(cudaDevAttrCanMapHostMemory);
    p.maxTexture1D = get(cudaDevAttrMaxTexture1DWidth);
    p.maxTexture1DMipmap = get(cudaDevAttrMaxTexture1DMipmappedWidth);
    p.maxTexture2D[0] = get(cudaDevAttrMaxTexture2DWidth);
    p.maxTexture2D[1] = get(cudaDevAttrMaxTexture2DHeight);
    p.maxTexture2DMipmap[0] = get(cudaDevAttrMaxTexture2DMipmappedWidth);
    p.maxTexture2DMipmap[1] = get(cudaDevAttrMaxTexture2DMipmappedHeight);
    p.maxTexture2DLinear[0] = get(cudaDevAttrMaxTexture2DLinearWidth);
    p.maxTexture2DLinear[1] = get(cudaDevAttrMaxTexture2DLinearHeight);
    p.maxTexture2DLinear[2] = get(cudaDevAttrMaxTexture2DLinearPitch);
    p.maxTexture2DGather[0] = get(cudaDevAttrMaxTexture2DGatherWidth);
    p.maxTexture2DGather[1] = get(cudaDevAttrMaxTexture2DGatherHeight);
    p.maxTexture3D[0] = p.maxTexture3D[1] = p.maxTexture3D[2] = get(cudaDevAttrMaxTexture3DWidth);
    p.maxTexture3DAlt[0] = p.maxTexture3DAlt[1] = get(cudaDevAttrMaxTexture3DWidthAlt);
    p.maxTexture3DAlt[2] = get(cudaDevAttrMaxTexture3DDepthAlt);
    p.maxTextureCubemap = get(cudaDevAttrMaxTextureCubemapWidth);
    p.maxTexture1DLayered[0] = get(cudaDevAttrMaxTexture1DLayeredWidth);
    p.maxTexture1DLayered[1] = get(cudaDevAttrMaxTexture1DLayeredLayers);
    p.maxTexture2DLayered[0] = p.maxTexture2DLayered[1] = get(cudaDevAttrMaxTexture2DLayeredWidth);
    p.maxTexture2DLayered[2] = get(cudaDevAttrMaxTexture2DLayeredLayers);
    p.maxTextureCubemapLayered[0] = get(cudaDevAttrMaxTextureCubemapLayeredWidth);
    p.maxTextureCubemapLayered[1] = get(cudaDevAttrMaxTextureCubemapLayeredLayers);
    p.maxSurface1D = get(cudaDevAttrMaxSurface1DWidth);
    p.maxSurface2D[0] = get(cudaDevAttrMaxSurface2DWidth);
    p.maxSurface2D[1] = get(cudaDevAttrMaxSurface2DHeight);
    p.maxSurface3D[0] = p.maxSurface3D[1] = p.maxSurface3D[2] = get(cudaDevAttrMaxSurface3DWidth);
    p.maxSurface1DLayered[0] = get(cudaDevAttrMaxSurface1DLayeredWidth);
    p.maxSurface1DLayered[1] = get(cudaDevAttrMaxSurface1DLayeredLayers);
    p.maxSurface2DLayered[0] = p.maxSurface2DLayered[1] = get(cudaDevAttrMaxSurface2DLayeredWidth);
    p.maxSurface2DLayered[2] = get(cudaDevAttrMaxSurface2DLayeredLayers);
    p.maxSurfaceCubemap = get(cudaDevAttrMaxSurfaceCubemapWidth);
    p.maxSurfaceCubemapLayered[0] = get(cudaDevAttrMaxSurfaceCubemapLayeredWidth);
    p.maxSurfaceCubemapLayered[1] = get(cudaDevAttrMaxSurfaceCubemapLayeredLayers);
    p.surfaceAlignment = get_size(cudaDevAttrSurfaceAlignment);
    p.concurrentKernels = get(cudaDevAttrConcurrentKernels);
    p.ECCEnabled = get(cudaDevAttrEccEnabled);
    p.pciBusID = get(cudaDevAttrPciBusId);
    p.asyncEngineCount = get(cudaDevAttrAsyncEngineCount);
    p.unifiedAddressing = get(cudaDevAttrUnifiedAddressing);
    p.memoryBusWidth = get(cudaDevAttrGlobalMemoryBusWidth);
    p.l2CacheSize = get(cudaDevAttrL2CacheSize);
    p.persistingL2CacheMaxSize = get(cudaDevAttrMaxPersistingL2CacheSize);
    p.maxThreadsPerMultiProcessor = get(cudaDevAttrMaxThreadsPerMultiProcessor);
    p.streamPrioritiesSupported = get(cudaDevAttrStreamPrioritiesSupported);
    p.globalL1CacheSupported = get(cudaDevAttrGlobalL1CacheSupported);
    p.localL1CacheSupported = get(cudaDevAttrLocalL1CacheSupported);
    p.sharedMemPerMultiprocessor = get_size(cudaDevAttrMaxSharedMemoryPerMultiprocessor);
    p.regsPerMultiprocessor = get(cudaDevAttrMaxRegistersPerMultiprocessor);
    p.managedMemory = get(cudaDevAttrManagedMemory);
    p.multiGpuBoardGroupID = get(cudaDevAttrMultiGpuBoardGroupID);
    p.concurrentManagedAccess = get(cudaDevAttrConcurrentManagedAccess);
    p.computePreemptionSupported = get(cudaDevAttrComputePreemptionSupported);
    p.canUseHostPointerForRegisteredMem = get(cudaDevAttrCanUseHostPointerForRegisteredMem);
    p.cooperativeLaunch = get(cudaDevAttrCooperativeLaunch);
    p.sharedMemPerBlockOptin = get_size(cudaDevAttrMaxSharedMemoryPerBlockOptin);
    p.maxBlocksPerMultiProcessor = get(cudaDevAttrMaxBlocksPerMultiprocessor);
    p.accessPolicyMaxWindowSize = get(cudaDevAttrMaxAccessPolicyWindowSize);
    p.reservedSharedMemPerBlock = get_size(cudaDevAttrReservedSharedMemoryPerBlock);
    p.hostRegisterSupported = get(cudaDevAttrHostRegisterSupported);
    p.timelineSemaphoreInteropSupported = get(cudaDevAttrTimelineSemaphoreInteropSupported);
    p.memoryPoolsSupported = get(cudaDevAttrMemoryPoolsSupported);
    p.clusterLaunch = get(cudaDevAttrClusterLaunch);
    p.deviceNumaId = get(cudaDevAttrNumaId);
    return p;
}

}  // namespace

extern "C" {

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int index)
{
    return call("cudaDeviceGetAttribute", query_call, [&]() -> cudaError_t {
        const Device* device = find_device(index);
        if (device == nullptr) {
            return cudaErrorInvalidDevice;
        }
        const auto known = attribute_of(attribute, *device);
        if (value == nullptr || !known) {
            return cudaErrorInvalidValue;
        }
        *value = *known;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int index)
{
    return call("cudaGetDeviceProperties", query_call, [&]() -> cudaError_t {
        const Device* device = find_device(index);
        if (device == nullptr) {
            return cudaErrorInvalidDevice;
        }
        if (properties == nullptr) {
            return cudaErrorInvalidValue;
        }
        *properties = properties_of(*device);
        return cudaSuccess;
    });
}

}  // extern "C"
