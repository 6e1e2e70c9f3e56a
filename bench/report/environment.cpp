#include "report/environment.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <ctime>
#include <fstream>
#include <string>
#include <thread>

#include "tessera/version.hpp"

namespace tessera::bench {
namespace {

std::string utc_date()
{
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    char text[sizeof("2000-01-01T00:00:00Z")];
    return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts)};
}

/// Returns the first line of `path` that begins with `prefix`, or nothing.
std::string find_line(const char* path, std::string_view prefix)
{
    std::ifstream file(path);
    for (std::string line; std::getline(file, line);) {
        if (line.starts_with(prefix)) {
            return line;
        }
    }
    return {};
}

std::string cpu_name()
{
    const std::string line = find_line("/proc/cpuinfo", "model name");
    const std::size_t colon = line.find(": ");
    return colon == std::string::npos ? "unknown" : line.substr(colon + 2);
}

std::string cuda_version(cudaError_t (*query)(int*))
{
    int version = 0;
    if (query(&version) != cudaSuccess) {
        return "unknown";
    }
    return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

std::string clock_rate(const Device& device)
{
    int kilohertz = 0;
    if (cudaDeviceGetAttribute(&kilohertz, cudaDevAttrClockRate, device.ordinal()) != cudaSuccess) {
        return "unknown";
    }
    return fmt::format("up to {} MHz (the device's maximum)", kilohertz / 1000);
}

}  // namespace

Environment environment_of(const Device& device)
{
    const DeviceProperties& properties = device.properties();
    const std::string module = find_line("/proc/driver/nvidia/version", "NVRM version:");
    return {
        {"date", utc_date()},
        {"tessera", fmt::format("{}.{}.{}", version.major, version.minor, version.patch)},
        {"device", fmt::format("{}, compute capability {}.{}, {} SMs, L2 cache {} MiB, memory {} MiB", properties.name,
                               properties.compute_capability_major, properties.compute_capability_minor,
                               properties.sm_count, properties.l2_cache_bytes >> 20, properties.memory_bytes >> 20)},
        {"SM clock", clock_rate(device)},
        {"driver", fmt::format("supports CUDA up to {}{}{}", cuda_version(cudaDriverGetVersion),
                               module.empty() ? "" : "; ", module)},
        {"CUDA runtime", cuda_version(cudaRuntimeGetVersion)},
        {"CPU", fmt::format("{}, {} threads", cpu_name(), std::thread::hardware_concurrency())},
        {"compiler", __VERSION__},
    };
}

std::string pci_bus_id_of(const Device& device)
{
    char text[32];
    return cudaDeviceGetPCIBusId(text, sizeof text, device.ordinal()) == cudaSuccess ? text : "";
}

}  // namespace tessera::bench
