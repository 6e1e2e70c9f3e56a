#include "tessera/device.hpp"

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <mutex>

#include "tessera/stream.hpp"

namespace tessera {
namespace {

int attribute(cudaDeviceAttr which, int ordinal, std::string_view operation, const std::source_location& caller)
{
    int value = 0;
    detail::check(cudaDeviceGetAttribute(&value, which, ordinal), "cudaDeviceGetAttribute", operation, caller);
    return value;
}

/// Fills in what follows from the compute capability alone.
void derive_features(DeviceProperties& properties)
{
    properties.has_clusters = properties.compute_capability_major >= 9;
    properties.has_tensor_maps = properties.compute_capability_major >= 9;
    properties.has_tensor_memory =
        properties.compute_capability_major == 10 || properties.compute_capability_major == 11;
}

DeviceProperties read_properties(int ordinal, std::string_view operation, const std::source_location& caller)
{
    cudaDeviceProp raw{};
    detail::check(cudaGetDeviceProperties(&raw, ordinal), "cudaGetDeviceProperties", operation, caller);
    DeviceProperties properties;
    properties.name = raw.name;
    properties.compute_capability_major = raw.major;
    properties.compute_capability_minor = raw.minor;
    properties.sm_count = raw.multiProcessorCount;
    properties.memory_bytes = raw.totalGlobalMem;
    properties.l2_cache_bytes = static_cast<std::size_t>(raw.l2CacheSize);
    properties.shared_memory_per_block_bytes = raw.sharedMemPerBlockOptin;
    properties.max_threads_per_block = raw.maxThreadsPerBlock;
    derive_features(properties);
    properties.has_memory_pools = attribute(cudaDevAttrMemoryPoolsSupported, ordinal, operation, caller) != 0;
    return properties;
}

/// More devices than any machine has.
constexpr std::size_t cached_devices = 128;

/// Entries are never freed, so references stay valid while static owners are destroyed. Read without a lock, because
/// every launch comes here.
std::array<std::atomic<const DeviceProperties*>, cached_devices> properties_cache{};

const DeviceProperties* find_cached(int ordinal) noexcept
{
    return ordinal >= 0 && static_cast<std::size_t>(ordinal) < cached_devices
               ? properties_cache[static_cast<std::size_t>(ordinal)].load(std::memory_order_acquire)
               : nullptr;
}

const DeviceProperties& read_into_cache(int ordinal, std::string_view operation, const std::source_location& caller)
{
    static auto* const mutex = new std::mutex;
    const std::scoped_lock lock(*mutex);
    if (const DeviceProperties* known = find_cached(ordinal)) {
        return *known;
    }
    const auto* read = new DeviceProperties(read_properties(ordinal, operation, caller));
    properties_cache.at(static_cast<std::size_t>(ordinal)).store(read, std::memory_order_release);
    return *read;
}

struct KnownDevice {
    int major;
    int minor;
    const char* name;
    int sm_count;
    std::size_t memory_gib;
    std::size_t l2_mib;
    std::size_t shared_memory_kib;
};

// One typical device per compute capability, from NVIDIA's data sheets and the CUDA programming guide's table of
// limits.
constexpr std::array known_devices{
    KnownDevice{7, 5, "T4", 40, 16, 4, 64},         KnownDevice{8, 0, "A100", 108, 80, 40, 163},
    KnownDevice{8, 6, "A40", 84, 48, 6, 99},        KnownDevice{8, 7, "Orin", 16, 64, 4, 163},
    KnownDevice{8, 9, "L40S", 142, 48, 96, 99},     KnownDevice{9, 0, "H200", 132, 141, 60, 227},
    KnownDevice{10, 0, "B200", 148, 180, 126, 227}, KnownDevice{10, 3, "B300", 148, 288, 126, 227},
    KnownDevice{11, 0, "Thor", 20, 128, 32, 227},   KnownDevice{12, 0, "RTX PRO 6000", 188, 96, 128, 99},
    KnownDevice{12, 1, "GB10", 48, 128, 24, 99},
};

}  // namespace

DeviceProperties DeviceProperties::of_compute_capability(int major, int minor, std::source_location caller)
{
    for (const KnownDevice& known : known_devices) {
        if (known.major == major && known.minor == minor) {
            DeviceProperties properties;
            properties.name = known.name;
            properties.compute_capability_major = major;
            properties.compute_capability_minor = minor;
            properties.sm_count = known.sm_count;
            properties.memory_bytes = known.memory_gib << 30U;
            properties.l2_cache_bytes = known.l2_mib << 20U;
            properties.shared_memory_per_block_bytes = known.shared_memory_kib << 10U;
            properties.max_threads_per_block = 1024;
            derive_features(properties);
            properties.has_memory_pools = true;
            return properties;
        }
    }
    std::string list;
    for (const KnownDevice& known : known_devices) {
        list += fmt::format("{}{}.{} ({})", list.empty() ? "" : ", ", known.major, known.minor, known.name);
    }
    detail::raise(ErrorCode::unsupported_device, "DeviceProperties::of_compute_capability", caller,
                  fmt::format("no device of compute capability {}.{} is known", major, minor), "one of " + list);
}

Device::Device(int ordinal, std::source_location caller) : Device(ordinal, "Device", caller) {}

Device::Device(int ordinal, std::string_view operation, const std::source_location& caller)
    : ordinal_(ordinal), properties_(find_cached(ordinal))
{
    if (properties_ != nullptr) {
        return;
    }
    int count = 0;
    detail::check(cudaGetDeviceCount(&count), "cudaGetDeviceCount", operation, caller);
    if (count == 0) {
        detail::raise(ErrorCode::no_device, operation, caller, "this machine has no CUDA device",
                      "check with nvidia-smi that a GPU and a driver for CUDA 13 or later are installed");
    }
    if (ordinal < 0 || ordinal >= count) {
        detail::raise(ErrorCode::out_of_range, operation, caller,
                      fmt::format("device {} does not exist: there {} {} device{}", ordinal, count == 1 ? "is" : "are",
                                  count, count == 1 ? "" : "s"),
                      fmt::format("an ordinal from 0 to {}", count - 1));
    }
    properties_ = &read_into_cache(ordinal, operation, caller);
}

Device Device::current(std::source_location caller) { return detail::current_device("Device::current", caller); }

int Device::count() noexcept
{
    int count = 0;
    if (cudaGetDeviceCount(&count) != cudaSuccess) {
        cudaGetLastError();
        return 0;
    }
    return count;
}

StreamRef Device::default_stream() const noexcept
{
    return StreamRef(detail::known_device, nullptr, ordinal_, nullptr);
}

void Device::synchronize(std::source_location caller) const
{
    const detail::CurrentDevice current(ordinal_, "Device::synchronize", caller);
    detail::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize", "Device::synchronize", caller);
}

std::size_t Device::free_memory_bytes(std::source_location caller) const
{
    const detail::CurrentDevice current(ordinal_, "Device::free_memory_bytes", caller);
    std::size_t free = 0;
    std::size_t total = 0;
    detail::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo", "Device::free_memory_bytes", caller);
    return free;
}

void Device::make_current(std::source_location caller) const
{
    detail::check(cudaSetDevice(ordinal_), "cudaSetDevice", "Device::make_current", caller);
}

namespace detail {

Device device_of_ordinal(int ordinal, std::string_view operation, const std::source_location& caller)
{
    return {ordinal, operation, caller};
}

Device current_device(std::string_view operation, const std::source_location& caller)
{
    int ordinal = 0;
    check(cudaGetDevice(&ordinal), "cudaGetDevice", operation, caller);
    return device_of_ordinal(ordinal, operation, caller);
}

CurrentDevice::CurrentDevice(int ordinal, std::string_view operation, const std::source_location& caller)
{
    if (ordinal < 0) {
        return;
    }
    int current = 0;
    check(cudaGetDevice(&current), "cudaGetDevice", operation, caller);
    if (current != ordinal) {
        check(cudaSetDevice(ordinal), "cudaSetDevice", operation, caller);
        previous_ = current;
    }
}

CurrentDevice::~CurrentDevice()
{
    if (previous_ >= 0) {
        drop(cudaSetDevice(previous_), "cudaSetDevice");
    }
}

void raise_device_mismatch(std::string_view operation, const std::source_location& caller, std::string_view left,
                           int left_device, std::string_view right, int right_device)
{
    raise(ErrorCode::device_mismatch, operation, caller,
          fmt::format("{} belongs to device {}, but {} belongs to device {}", left, left_device, right, right_device),
          fmt::format("use a stream and memory of one device, or copy the data to device {} first", left_device));
}

}  // namespace detail
}  // namespace tessera
