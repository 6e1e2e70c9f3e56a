#pragma once

/// A device's clock and power, read through NVML, the library behind nvidia-smi. It is loaded when it is first wanted:
/// a machine without it can measure everything else.
///
/// Names, values and structures are those of nvml.h (NVML API Reference Guide).

#include <cstdint>
#include <string>

namespace tessera::bench {

/// What a device does at one moment.
struct DeviceReading {
    double sm_mhz = 0;
    double watts = 0;            ///< 0: the device does not tell
    std::uint64_t throttle = 0;  ///< NVML's bits for what limits the clock: see `describe_throttle`
};

/// One device in NVML. Its functions may be called by any thread.
class NvmlDevice {
public:
    static constexpr const char* usual_library = "libnvidia-ml.so.1";

    /// @param pci_bus_id  as cudaDeviceGetPCIBusId gives it
    /// @throws std::runtime_error  one sentence: there is no NVML, or it does not know the device or its clock
    explicit NvmlDevice(const std::string& pci_bus_id, const char* library = usual_library);
    ~NvmlDevice();
    NvmlDevice(const NvmlDevice&) = delete;
    NvmlDevice& operator=(const NvmlDevice&) = delete;

    /// Reads the SM clock, the power of this moment (its average of one second if the driver knows no other), and what
    /// limits the clock. @throws std::runtime_error  if the clock cannot be read
    DeviceReading read() const;

private:
    struct FieldValue;
    using Device = void*;

    template <class Function>
    Function find(const char* name) const;

    void* library_ = nullptr;
    Device device_ = nullptr;
    int (*shutdown_)() = nullptr;
    int (*clock_)(Device, unsigned, unsigned*) = nullptr;
    int (*average_power_)(Device, unsigned*) = nullptr;  // may be null, as those below
    int (*fields_)(Device, int, FieldValue*) = nullptr;
    int (*throttle_)(Device, unsigned long long*) = nullptr;
};

/// "power cap+thermal slowdown": the names of the bits, or "none".
std::string describe_throttle(std::uint64_t reasons);

}  // namespace tessera::bench
