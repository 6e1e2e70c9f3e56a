#pragma once

/// @file
/// @ingroup host_launch
/// @brief CUDA devices: `Device`, one of this process, and `DeviceProperties`, plain facts that need no GPU.

#include <cstddef>
#include <source_location>
#include <string>
#include <string_view>

#include "tessera/error.hpp"

namespace tessera {

class Device;
class StreamRef;

namespace detail {

// For callers that name their own operation in an error.
Device device_of_ordinal(int ordinal, std::string_view operation, const std::source_location& caller);
Device current_device(std::string_view operation, const std::source_location& caller);

}  // namespace detail

/// Facts about a device, as a value. Choosing a kernel variant needs nothing else, so that it works (and is tested) for
/// a device that is not present: see `of_compute_capability`.
struct DeviceProperties {
    std::string name;                               ///< the driver's name for it, such as "NVIDIA H200"
    int compute_capability_major = 0;               ///< 9 for an H200
    int compute_capability_minor = 0;               ///< 0 for an H200
    int sm_count = 0;                               ///< number of SMs (streaming multiprocessors)
    std::size_t memory_bytes = 0;                   ///< size of global memory
    std::size_t l2_cache_bytes = 0;                 ///< size of the L2 cache
    std::size_t shared_memory_per_block_bytes = 0;  ///< limit of one CTA with opt-in, static and dynamic together
    int max_threads_per_block = 0;                  ///< limit of threads of one CTA
    bool has_clusters = false;       ///< has thread-block clusters and distributed shared memory (9.0 and later)
    bool has_tensor_maps = false;    ///< has the tensor memory accelerator, TMA (9.0 and later)
    bool has_tensor_memory = false;  ///< has tensor memory and tcgen05 (10.x and 11.x)
    bool has_memory_pools = false;   ///< has cudaMallocAsync

    /// Returns 10 * major + minor: 90 for an H200, 100 for a B200.
    int compute_capability() const noexcept { return 10 * compute_capability_major + compute_capability_minor; }

    /// Returns the facts of a typical device of compute capability `major`.`minor`, which need not be present. For
    /// `GemmPlan::explain` and tests.
    ///
    /// @throws Error  `unsupported_device` for a compute capability below 7.5 or unknown to this release
    static DeviceProperties of_compute_capability(int major, int minor,
                                                  std::source_location caller = std::source_location::current());
};

/// One CUDA device of this process. A small value; copying it copies only its ordinal.
///
/// @code{.cpp}
/// const Device device = Device::current();
/// std::printf("%s, %d SMs\n", device.properties().name.c_str(), device.properties().sm_count);
/// @endcode
///
/// @par Thread safety
/// Every function may be called from several threads at the same time. Each thread has its own current device.
class Device {
public:
    /// The device with this ordinal.
    /// @param ordinal  CUDA's number of the device: 0 <= ordinal < count()
    /// @throws Error  `no_device` if there is none, `out_of_range` if there are fewer
    explicit Device(int ordinal, std::source_location caller = std::source_location::current());

    /// Returns the calling thread's current device.
    /// @throws Error  `no_device` if there is none
    static Device current(std::source_location caller = std::source_location::current());

    /// Returns the number of devices: 0, not an error, if there is no driver or no GPU.
    static int count() noexcept;

    /// Returns CUDA's number of the device.
    int ordinal() const noexcept { return ordinal_; }

    /// Returns the device's facts. They are read once per device and process; the reference stays valid until the
    /// process ends.
    const DeviceProperties& properties() const noexcept { return *properties_; }

    /// Returns the device's legacy default stream. It synchronizes with every blocking stream of the device, in both
    /// directions.
    StreamRef default_stream() const noexcept;

    /// Blocks the calling thread until all work on the device is done.
    /// @throws Error  `context_lost` if some of that work failed, `capture_violation` while one of its streams is being
    ///                captured
    void synchronize(std::source_location caller = std::source_location::current()) const;

    /// Returns the bytes of global memory that are free now.
    std::size_t free_memory_bytes(std::source_location caller = std::source_location::current()) const;

    /// Makes the device current for the calling thread. Only code that mixes the SDK with raw CUDA calls needs it.
    void make_current(std::source_location caller = std::source_location::current()) const;

    /// Returns true for the same device.
    friend bool operator==(const Device& left, const Device& right) noexcept { return left.ordinal_ == right.ordinal_; }

private:
    friend Device detail::device_of_ordinal(int ordinal, std::string_view operation,
                                            const std::source_location& caller);

    Device(int ordinal, std::string_view operation, const std::source_location& caller);

    int ordinal_;
    const DeviceProperties* properties_;
};

namespace detail {

/// Makes a device current and restores the previous one. Costs one query if the device already is current.
class CurrentDevice {
public:
    CurrentDevice(int ordinal, std::string_view operation, const std::source_location& caller);
    ~CurrentDevice();
    CurrentDevice(const CurrentDevice&) = delete;
    CurrentDevice& operator=(const CurrentDevice&) = delete;

private:
    int previous_ = -1;  // -1: nothing to restore
};

[[noreturn]] void raise_device_mismatch(std::string_view operation, const std::source_location& caller,
                                        std::string_view left, int left_device, std::string_view right,
                                        int right_device);

/// -1 means "not bound to a device" (an empty object) and agrees with all.
inline void require_same_device(std::string_view operation, const std::source_location& caller, std::string_view left,
                                int left_device, std::string_view right, int right_device)
{
    if (left_device != right_device && left_device >= 0 && right_device >= 0) [[unlikely]] {
        raise_device_mismatch(operation, caller, left, left_device, right, right_device);
    }
}

}  // namespace detail
}  // namespace tessera
