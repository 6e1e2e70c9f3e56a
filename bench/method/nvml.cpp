#include "method/nvml.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <stdexcept>

namespace tessera::bench {
namespace {

constexpr int success = 0;
constexpr unsigned sm_clock = 1;         // NVML_CLOCK_SM
constexpr unsigned instant_power = 186;  // NVML_FI_DEV_POWER_INSTANT, milliwatts

struct Reason {
    std::uint64_t bit;
    const char* name;
};

constexpr std::array reasons_by_bit{Reason{0x1, "idle"},
                                    Reason{0x2, "application clock"},
                                    Reason{0x4, "power cap"},
                                    Reason{0x8, "hardware slowdown"},
                                    Reason{0x10, "sync boost"},
                                    Reason{0x20, "thermal slowdown"},
                                    Reason{0x40, "hardware thermal slowdown"},
                                    Reason{0x80, "power brake"},
                                    Reason{0x100, "display clock"}};

}  // namespace

/// nvmlFieldValue_t. The value of the fields that are read here is an unsigned int.
struct NvmlDevice::FieldValue {
    unsigned field;
    unsigned scope;
    long long timestamp;
    long long latency_us;
    int type;
    int status;
    union {
        unsigned number;
        unsigned long long largest;
    } value;
};

template <class Function>
Function NvmlDevice::find(const char* name) const
{
    return reinterpret_cast<Function>(dlsym(library_, name));
}

NvmlDevice::NvmlDevice(const std::string& pci_bus_id, const char* library)
    : library_(dlopen(library, RTLD_NOW | RTLD_LOCAL))
{
    if (library_ == nullptr) {
        throw std::runtime_error(fmt::format("{} cannot be loaded", library));
    }
    const auto refuse = [&](const std::string& sentence) {
        if (shutdown_ != nullptr) {
            shutdown_();
        }
        dlclose(library_);
        throw std::runtime_error(sentence);
    };
    auto* const initialize = find<int (*)()>("nvmlInit_v2");
    auto* const shutdown = find<int (*)()>("nvmlShutdown");
    auto* const find_device = find<int (*)(const char*, Device*)>("nvmlDeviceGetHandleByPciBusId_v2");
    clock_ = find<decltype(clock_)>("nvmlDeviceGetClockInfo");
    average_power_ = find<decltype(average_power_)>("nvmlDeviceGetPowerUsage");
    fields_ = find<decltype(fields_)>("nvmlDeviceGetFieldValues");
    // The newer name of the same function comes first.
    throttle_ = find<decltype(throttle_)>("nvmlDeviceGetCurrentClocksEventReasons");
    if (throttle_ == nullptr) {
        throttle_ = find<decltype(throttle_)>("nvmlDeviceGetCurrentClocksThrottleReasons");
    }
    if (initialize == nullptr || shutdown == nullptr || find_device == nullptr || clock_ == nullptr) {
        refuse(fmt::format("{} lacks functions of NVML 5", library));
    }
    if (const int status = initialize(); status != success) {
        refuse(fmt::format("nvmlInit_v2 returned {}", status));
    }
    shutdown_ = shutdown;
    if (const int status = find_device(pci_bus_id.c_str(), &device_); status != success) {
        refuse(fmt::format("NVML does not know the device at {}: it returned {}", pci_bus_id, status));
    }
    unsigned mhz = 0;
    if (const int status = clock_(device_, sm_clock, &mhz); status != success) {
        refuse(fmt::format("NVML does not tell the SM clock of the device at {}: it returned {}", pci_bus_id, status));
    }
}

NvmlDevice::~NvmlDevice()
{
    shutdown_();
    dlclose(library_);
}

DeviceReading NvmlDevice::read() const
{
    DeviceReading reading;
    unsigned mhz = 0;
    if (const int status = clock_(device_, sm_clock, &mhz); status != success) {
        throw std::runtime_error(fmt::format("nvmlDeviceGetClockInfo returned {}", status));
    }
    reading.sm_mhz = mhz;

    FieldValue power{};
    power.field = instant_power;
    unsigned milliwatts = 0;
    if (fields_ != nullptr && fields_(device_, 1, &power) == success && power.status == success) {
        reading.watts = 1e-3 * power.value.number;
    } else if (average_power_ != nullptr && average_power_(device_, &milliwatts) == success) {
        reading.watts = 1e-3 * milliwatts;
    }
    unsigned long long throttle = 0;
    if (throttle_ != nullptr && throttle_(device_, &throttle) == success) {
        reading.throttle = throttle;
    }
    return reading;
}

std::string describe_throttle(std::uint64_t reasons)
{
    std::string text;
    for (const Reason& reason : reasons_by_bit) {
        if ((reasons & reason.bit) != 0) {
            text += (text.empty() ? "" : "+") + std::string(reason.name);
            reasons &= ~reason.bit;
        }
    }
    if (reasons != 0) {
        text += fmt::format("{}reason {:#x}", text.empty() ? "" : "+", reasons);
    }
    return text.empty() ? "none" : text;
}

}  // namespace tessera::bench
