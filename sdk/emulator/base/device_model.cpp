#include "base/device_model.hpp"

#include <array>
#include <charconv>

namespace tessera::emulator {

namespace {

// CUDA programming guide, table of compute capabilities; device queries of the named boards.
// B300: L2 cache and clocks as a B200's. Thor: GPC of at most eight SMs, so no larger cluster.
const std::array<DeviceModel, 5> models{{
    {.key = "b200",
     .name = "NVIDIA B200 (emulated)",
     .major = 10,
     .minor = 0,
     .multiprocessors = 148,
     .memory = 178ull << 30,
     .l2_cache = 126ull << 20,
     .shared_per_multiprocessor = 228 << 10,
     .shared_per_cta_optin = 227 << 10,
     .reserved_shared_per_cta = 1 << 10,
     .threads_per_multiprocessor = 2048,
     .ctas_per_multiprocessor = 32,
     .clock = 1'965'000,
     .memory_clock = 3'996'000,
     .memory_bus_bits = 7680,
     .max_cluster = 16,
     .portable_cluster = 8,
     .tensor_memory = true,
     .cluster_launch_control = true},
    {.key = "b300",
     .name = "NVIDIA B300 (emulated)",
     .major = 10,
     .minor = 3,
     .multiprocessors = 148,
     .memory = 268ull << 30,
     .l2_cache = 126ull << 20,
     .shared_per_multiprocessor = 228 << 10,
     .shared_per_cta_optin = 227 << 10,
     .reserved_shared_per_cta = 1 << 10,
     .threads_per_multiprocessor = 2048,
     .ctas_per_multiprocessor = 32,
     .clock = 1'965'000,
     .memory_clock = 3'996'000,
     .memory_bus_bits = 8192,
     .max_cluster = 16,
     .portable_cluster = 8,
     .tensor_memory = true,
     .cluster_launch_control = true},
    {.key = "thor",
     .name = "NVIDIA Thor (emulated)",
     .major = 11,
     .minor = 0,
     .multiprocessors = 20,
     .memory = 122ull << 30,
     .l2_cache = 32ull << 20,
     .shared_per_multiprocessor = 228 << 10,
     .shared_per_cta_optin = 227 << 10,
     .reserved_shared_per_cta = 1 << 10,
     .threads_per_multiprocessor = 1536,
     .ctas_per_multiprocessor = 24,
     .clock = 1'575'000,
     .memory_clock = 4'266'000,
     .memory_bus_bits = 256,
     .max_cluster = 8,
     .portable_cluster = 8,
     .tensor_memory = true,
     .cluster_launch_control = true},
    {.key = "h200",
     .name = "NVIDIA H200 (emulated)",
     .major = 9,
     .minor = 0,
     .multiprocessors = 132,
     .memory = 139ull << 30,
     .l2_cache = 60ull << 20,
     .shared_per_multiprocessor = 228 << 10,
     .shared_per_cta_optin = 227 << 10,
     .reserved_shared_per_cta = 1 << 10,
     .threads_per_multiprocessor = 2048,
     .ctas_per_multiprocessor = 32,
     .clock = 1'980'000,
     .memory_clock = 3'201'000,
     .memory_bus_bits = 6144,
     .max_cluster = 16,
     .portable_cluster = 8},
    {.key = "t4",
     .name = "Tesla T4 (emulated)",
     .major = 7,
     .minor = 5,
     .multiprocessors = 40,
     .memory = 15ull << 30,
     .l2_cache = 4ull << 20,
     .shared_per_multiprocessor = 64 << 10,
     .shared_per_cta_optin = 64 << 10,
     .threads_per_multiprocessor = 1024,
     .ctas_per_multiprocessor = 16,
     .clock = 1'590'000,
     .memory_clock = 5'001'000,
     .memory_bus_bits = 256},
}};

}  // namespace

std::span<const DeviceModel> device_models() { return models; }

const DeviceModel* find_device_model(std::string_view key)
{
    for (const DeviceModel& model : models) {
        if (model.key == key) {
            return &model;
        }
    }
    return nullptr;
}

bool runs_target(const DeviceModel& device, std::string_view target)
{
    if (!target.starts_with("sm_") && !target.starts_with("compute_")) {
        return false;
    }
    target.remove_prefix(target.find('_') + 1);
    unsigned number = 0;
    const auto [end, error] = std::from_chars(target.data(), target.data() + target.size(), number);
    if (error != std::errc{}) {
        return false;
    }
    const std::string_view suffix(end, static_cast<std::size_t>(target.data() + target.size() - end));
    if (suffix == "a") {
        return number == device.capability();
    }
    if (suffix == "f") {  // same generation, not newer
        return number / 10 == device.major && number <= device.capability();
    }
    return suffix.empty() && number <= device.capability();
}

}  // namespace tessera::emulator
