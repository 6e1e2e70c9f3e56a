/// The fake runtime's devices and its last-error slot.

#include <cstring>

#include "runtime_state.hpp"

using namespace tessera::fake;

namespace {

/// The properties of each fake device that the SDK reads.
struct DeviceFacts {
    const char* name;
    int major;
    int minor;
    int sm_count;
    std::size_t memory_mib;
    std::size_t shared_memory_kib;
    bool pools;
};
constexpr DeviceFacts device_facts[] = {
    {"H200", 9, 0, 132, 1024, 227, true},
    {"T4", 7, 5, 40, 256, 64, false},
    {"B200", 10, 0, 148, 1024, 227, true},
};

bool exists(int device) { return device >= 0 && device < runtime().device_count; }

}  // namespace

std::size_t tessera::fake::total_memory(int device) { return device_facts[device].memory_mib << 20U; }

std::size_t tessera::fake::free_memory(int device)
{
    std::size_t free = total_memory(device);
    for (const auto& [address, allocation] : runtime().memory) {
        if (allocation.alive && allocation.kind != MemoryKind::pinned && allocation.device == device) {
            free -= allocation.bytes;
        }
    }
    return free;
}

cudaError_t cudaGetDeviceCount(int* count)
{
    return call("cudaGetDeviceCount", [&] {
        *count = runtime().device_count;
        return runtime().device_count_status;
    });
}

cudaError_t cudaDriverGetVersion(int* version)
{
    return call("cudaDriverGetVersion", [&] {
        *version = 13000;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDevice(int* device)
{
    return call("cudaGetDevice", [&] {
        if (runtime().device_count == 0) {
            return cudaErrorNoDevice;
        }
        *device = this_thread().device;
        return cudaSuccess;
    });
}

cudaError_t cudaSetDevice(int device)
{
    return call("cudaSetDevice", [&] {
        if (!exists(device)) {
            return cudaErrorInvalidDevice;
        }
        this_thread().device = device;
        return cudaSuccess;
    });
}

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device)
{
    return call("cudaGetDeviceProperties", [&] {
        if (!exists(device)) {
            return cudaErrorInvalidDevice;
        }
        const DeviceFacts& facts = device_facts[device];
        *properties = {};
        std::strncpy(properties->name, facts.name, sizeof properties->name - 1);
        properties->major = facts.major;
        properties->minor = facts.minor;
        properties->multiProcessorCount = facts.sm_count;
        properties->totalGlobalMem = facts.memory_mib << 20U;
        properties->l2CacheSize = 60 << 20;
        properties->sharedMemPerBlockOptin = facts.shared_memory_kib << 10U;
        properties->maxThreadsPerBlock = 1024;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device)
{
    return call("cudaDeviceGetAttribute", [&] {
        if (!exists(device) || attribute != cudaDevAttrMemoryPoolsSupported) {
            return cudaErrorInvalidValue;
        }
        *value = device_facts[device].pools ? 1 : 0;
        return cudaSuccess;
    });
}

cudaError_t cudaDeviceSynchronize()
{
    return call("cudaDeviceSynchronize", OnFault::perform, [&] {
        if (const cudaError_t forbidden = forbid_in_capture(); forbidden != cudaSuccess) {
            return forbidden;
        }
        for (const auto& [id, stream] : runtime().streams) {
            if (stream.device == this_thread().device) {
                complete(stream.clock);
            }
        }
        return cudaSuccess;
    });
}

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total)
{
    return call("cudaMemGetInfo", [&] {
        *total = total_memory(this_thread().device);
        *free = free_memory(this_thread().device);
        return cudaSuccess;
    });
}

// Neither logged nor subject to faults, because they only report.

cudaError_t cudaPeekAtLastError()
{
    const std::scoped_lock lock(runtime_mutex());
    return runtime().sticky != cudaSuccess ? runtime().sticky : this_thread().last_error;
}

cudaError_t cudaGetLastError()
{
    const cudaError_t status = cudaPeekAtLastError();
    this_thread().last_error = cudaSuccess;
    return status;
}
