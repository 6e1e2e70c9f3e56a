// Devices: which exist, which is current, and their state.

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime/call.hpp"
#include "runtime/stream_work.hpp"

using namespace tessera::emulator;

namespace {

constexpr unsigned known_device_flags =
    cudaDeviceScheduleMask | cudaDeviceMapHost | cudaDeviceLmemResizeToMax | cudaDeviceSyncMemops;

std::size_t default_limit(cudaLimit limit)
{
    switch (limit) {
        case cudaLimitStackSize: return 1024;
        case cudaLimitPrintfFifoSize: return 8650752;
        case cudaLimitMallocHeapSize: return 8 << 20;
        case cudaLimitDevRuntimeSyncDepth: return 2;
        case cudaLimitDevRuntimePendingLaunchCount: return 2048;
        case cudaLimitMaxL2FetchGranularity: return 64;
        default: return 0;
    }
}

constexpr std::size_t largest_fetch = 128;  // bytes, from the L2 cache

bool is_limit(cudaLimit limit) { return limit >= cudaLimitStackSize && limit <= cudaLimitPersistingL2CacheSize; }

std::string pci_bus_id(int device) { return fmt::format("0000:{:02X}:00.0", device + 1); }

bool are_peers(int device, int peer) { return device != peer; }

}  // namespace

std::size_t tessera::emulator::limit_of(const Device& device, cudaLimit limit)
{
    const auto found = device.limits.find(limit);
    return found == device.limits.end() ? default_limit(limit) : found->second;
}

extern "C" {

cudaError_t cudaGetDeviceCount(int* count)
{
    return call("cudaGetDeviceCount", query_call, [&]() -> cudaError_t {
        if (count == nullptr) {
            return cudaErrorInvalidValue;
        }
        *count = static_cast<int>(Runtime::get().devices.size());
        return cudaSuccess;
    });
}

cudaError_t cudaGetDevice(int* device)
{
    return call("cudaGetDevice", query_call, [&]() -> cudaError_t {
        if (device == nullptr) {
            return cudaErrorInvalidValue;
        }
        *device = ThreadState::get().device;
        return cudaSuccess;
    });
}

/// The calling thread's state, for the driver's calls about contexts.
ThreadState* tessera_emulator_thread_state() { return &ThreadState::get(); }

cudaError_t cudaSetDevice(int device)
{
    return call("cudaSetDevice", query_call, [&]() -> cudaError_t {
        const Device* found = find_device(device);
        if (found == nullptr) {
            return cudaErrorInvalidDevice;
        }
        ThreadState::get().device = device;
        ThreadState::get().has_context = true;
        return static_cast<cudaError_t>(found->failure.load());
    });
}

cudaError_t cudaInitDevice(int device, unsigned flags, unsigned /*what*/)
{
    return call("cudaInitDevice", query_call, [&]() -> cudaError_t {
        if (find_device(device) == nullptr) {
            return cudaErrorInvalidDevice;
        }
        return (flags & ~known_device_flags) != 0 ? cudaErrorInvalidValue : cudaSuccess;
    });
}

cudaError_t cudaSetValidDevices(int* devices, int count)
{
    return call("cudaSetValidDevices", query_call, [&]() -> cudaError_t {
        for (int i = 0; i < count; ++i) {
            if (devices == nullptr || find_device(devices[i]) == nullptr) {
                return cudaErrorInvalidDevice;
            }
        }
        return cudaSuccess;
    });
}

cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    return call("cudaSetDeviceFlags", query_call, [&]() -> cudaError_t {
        if ((flags & ~known_device_flags) != 0) {
            return cudaErrorInvalidValue;
        }
        current_device().flags = flags;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceFlags(unsigned* flags)
{
    return call("cudaGetDeviceFlags", query_call, [&]() -> cudaError_t {
        if (flags == nullptr) {
            return cudaErrorInvalidValue;
        }
        *flags = current_device().flags | cudaDeviceMapHost;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSynchronize()
{
    return call("cudaDeviceSynchronize", release_call, [&]() -> cudaError_t {
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        Device& device = current_device();
        wait_for(device);
        return static_cast<cudaError_t>(device.failure.load());
    });
}

/// Destroys everything on the device: memory, streams, events, modules. A lost context becomes usable again.
cudaError_t cudaDeviceReset()
{
    return call("cudaDeviceReset", query_call, [&]() -> cudaError_t {
        if (const cudaError_t forbidden = forbid_in_host_function("cudaDeviceReset"); forbidden != cudaSuccess) {
            return forbidden;
        }
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        Runtime& runtime = Runtime::get();
        Device& device = current_device();
        wait_for(device);
        const std::scoped_lock lock(runtime.mutex);
        for (const auto& [address, record] : runtime.heap.living()) {
            if (record.device == device.index && record.origin != Origin::graph &&
                record.origin != Origin::registered) {
                runtime.heap.finish_free(address);
            }
        }
        runtime.memory.free_heap(device.index);
        std::erase_if(runtime.streams, [&](Stream* stream) {
            return stream->device == &device && stream->kind == Stream::Kind::created;
        });
        std::erase_if(runtime.events, [&](const auto& entry) { return entry.second->device == device.index; });
        for (const auto& [handle, image] : runtime.images) {
            image->loaded.erase(device.index);
        }
        for (const Kernel* kernel : runtime.kernels) {
            const_cast<Kernel*>(kernel)->states.erase(device.index);
        }
        device.failure = 0;
        device.peers.clear();
        device.limits.clear();
        ThreadState::get().last_error = cudaSuccess;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetLimit(cudaLimit limit, size_t value)
{
    return call("cudaDeviceSetLimit", [&]() -> cudaError_t {
        if (!is_limit(limit)) {
            return cudaErrorInvalidValue;
        }
        const std::scoped_lock lock(Runtime::get().mutex);
        Device& device = current_device();
        if (limit == cudaLimitDevRuntimeSyncDepth && device.model->major >= 9) {
            return cudaErrorUnsupportedLimit;
        }
        if ((limit == cudaLimitPrintfFifoSize && device.launched_printf) ||
            (limit == cudaLimitMallocHeapSize && device.launched_malloc)) {
            return cudaErrorInvalidValue;  // the buffer is in use
        }
        device.limits[limit] = limit == cudaLimitMaxL2FetchGranularity ? std::min(value, largest_fetch) : value;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetLimit(size_t* value, cudaLimit limit)
{
    return call("cudaDeviceGetLimit", [&]() -> cudaError_t {
        if (value == nullptr) {
            return cudaErrorInvalidValue;
        }
        if (!is_limit(limit)) {
            return cudaErrorUnsupportedLimit;
        }
        const std::scoped_lock lock(Runtime::get().mutex);
        *value = limit_of(current_device(), limit);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config)
{
    return call("cudaDeviceGetCacheConfig", [&]() -> cudaError_t {
        if (config == nullptr) {
            return cudaErrorInvalidValue;
        }
        *config = current_device().cache_config;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config)
{
    return call("cudaDeviceSetCacheConfig", [&] {
        current_device().cache_config = config;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config)
{
    return call("cudaDeviceGetSharedMemConfig", [&]() -> cudaError_t {
        if (config == nullptr) {
            return cudaErrorInvalidValue;
        }
        *config = cudaSharedMemBankSizeFourByte;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig /*config*/)
{
    return call("cudaDeviceSetSharedMemConfig", [] { return cudaSuccess; });
}

cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest)
{
    return call("cudaDeviceGetStreamPriorityRange", [&] {
        if (least != nullptr) {
            *least = 0;
        }
        if (greatest != nullptr) {
            *greatest = -5;
        }
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetPCIBusId(char* id, int length, int device)
{
    return call("cudaDeviceGetPCIBusId", query_call, [&]() -> cudaError_t {
        if (find_device(device) == nullptr) {
            return cudaErrorInvalidDevice;
        }
        const std::string text = pci_bus_id(device);
        if (id == nullptr || length <= static_cast<int>(text.size())) {
            return cudaErrorInvalidValue;
        }
        std::memcpy(id, text.c_str(), text.size() + 1);
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* id)
{
    return call("cudaDeviceGetByPCIBusId", query_call, [&]() -> cudaError_t {
        if (device == nullptr || id == nullptr) {
            return cudaErrorInvalidValue;
        }
        for (const auto& known : Runtime::get().devices) {
            // The domain and the function are optional.
            if (pci_bus_id(known->index).find(id) != std::string::npos) {
                *device = known->index;
                return cudaSuccess;
            }
        }
        return cudaErrorInvalidDevice;
    });
}

cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wanted)
{
    return call("cudaChooseDevice", query_call, [&]() -> cudaError_t {
        if (device == nullptr || wanted == nullptr) {
            return cudaErrorInvalidValue;
        }
        *device = 0;
        for (const auto& known : Runtime::get().devices) {
            if (static_cast<int>(known->model->major) == wanted->major) {
                *device = known->index;
                break;
            }
        }
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer)
{
    return call("cudaDeviceCanAccessPeer", query_call, [&]() -> cudaError_t {
        if (find_device(device) == nullptr || find_device(peer) == nullptr) {
            return cudaErrorInvalidDevice;
        }
        if (can == nullptr) {
            return cudaErrorInvalidValue;
        }
        *can = are_peers(device, peer) ? 1 : 0;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    return call("cudaDeviceEnablePeerAccess", [&]() -> cudaError_t {
        Device& device = current_device();
        if (find_device(peer) == nullptr) {
            return cudaErrorInvalidDevice;
        }
        if (!are_peers(device.index, peer)) {
            return cudaErrorPeerAccessUnsupported;
        }
        if (flags != 0) {
            return cudaErrorInvalidValue;
        }
        return device.peers.insert(peer).second ? cudaSuccess : cudaErrorPeerAccessAlreadyEnabled;
    });
}

cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    return call("cudaDeviceDisablePeerAccess", [&]() -> cudaError_t {
        if (find_device(peer) == nullptr) {
            return cudaErrorInvalidDevice;
        }
        return current_device().peers.erase(peer) != 0 ? cudaSuccess : cudaErrorPeerAccessNotEnabled;
    });
}

cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int from, int to)
{
    return call("cudaDeviceGetP2PAttribute", query_call, [&]() -> cudaError_t {
        if (find_device(from) == nullptr || find_device(to) == nullptr) {
            return cudaErrorInvalidDevice;
        }
        if (value == nullptr || from == to) {
            return cudaErrorInvalidValue;
        }
        *value =
            attribute == cudaDevP2PAttrPerformanceRank || attribute == cudaDevP2PAttrCudaArrayAccessSupported ? 0 : 1;
        return cudaSuccess;
    });
}

cudaError_t cudaCtxResetPersistingL2Cache()
{
    return call("cudaCtxResetPersistingL2Cache", [] { return cudaSuccess; });
}

cudaError_t cudaDeviceFlushGPUDirectRDMAWrites(cudaFlushGPUDirectRDMAWritesTarget /*target*/,
                                               cudaFlushGPUDirectRDMAWritesScope /*scope*/)
{
    return call("cudaDeviceFlushGPUDirectRDMAWrites", [] { return cudaSuccess; });
}

}  // extern "C"
