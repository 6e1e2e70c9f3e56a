#include "base/device_model.hpp"

#include <array>
#include <charconv>

namespace tessera::emulator {

namespace {

// CUDA programming guide, table of compute capabilities; device queries of the B200, H200 and T4. The figures of the H100, A100, A10,
// L40S, RTX 5090 and GB10 were checked against no board: only the CTAs of an SM, against the toolkit's cuda_occupancy.h.
const DeviceModel b200{.key = "b200",
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
                       .cluster_launch_control = true};

/// Compute capability 10.3 has the limits of 10.0. L2 cache and clocks are taken from the B200, the number of SMs and the
/// memory from the data sheet.
DeviceModel b300()
{
    DeviceModel model = b200;
    model.key = "b300";
    model.name = "NVIDIA B300 (emulated)";
    model.minor = 3;
    model.memory = 268ull << 30;
    model.memory_bus_bits = 8192;
    return model;
}

/// SMs and L2 cache are a device query's; limits of threads and CTAs are those of compute capability 11.0 in libcu++'s
/// `arch_traits`; memory and clocks are the data sheet's. A GPC has at most eight SMs, so no cluster is larger.
DeviceModel thor()
{
    DeviceModel model = b200;
    model.key = "thor";
    model.name = "NVIDIA Thor (emulated)";
    model.major = 11;
    model.minor = 0;
    model.multiprocessors = 20;
    model.memory = 122ull << 30;
    model.l2_cache = 32ull << 20;
    model.threads_per_multiprocessor = 1536;
    model.ctas_per_multiprocessor = 24;
    model.clock = 1'575'000;
    model.memory_clock = 4'266'000;
    model.memory_bus_bits = 256;
    model.max_cluster = 8;
    return model;
}

const DeviceModel h200{.key = "h200",
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
                       .portable_cluster = 8};

/// The SXM board with 80 GB.
DeviceModel h100()
{
    DeviceModel model = h200;
    model.key = "h100";
    model.name = "NVIDIA H100 (emulated)";
    model.memory = 79ull << 30;
    model.l2_cache = 50ull << 20;
    model.memory_clock = 2'619'000;
    model.memory_bus_bits = 5120;
    return model;
}

/// The SXM board with 80 GB.
const DeviceModel a100{.key = "a100",
                       .name = "NVIDIA A100 (emulated)",
                       .major = 8,
                       .minor = 0,
                       .multiprocessors = 108,
                       .memory = 79ull << 30,
                       .l2_cache = 40ull << 20,
                       .shared_per_multiprocessor = 164 << 10,
                       .shared_per_cta_optin = 163 << 10,
                       .reserved_shared_per_cta = 1 << 10,
                       .threads_per_multiprocessor = 2048,
                       .ctas_per_multiprocessor = 32,
                       .clock = 1'410'000,
                       .memory_clock = 1'593'000,
                       .memory_bus_bits = 5120};

const DeviceModel a10{.key = "a10",
                      .name = "NVIDIA A10 (emulated)",
                      .major = 8,
                      .minor = 6,
                      .multiprocessors = 72,
                      .memory = 22ull << 30,
                      .l2_cache = 6ull << 20,
                      .shared_per_multiprocessor = 100 << 10,
                      .shared_per_cta_optin = 99 << 10,
                      .reserved_shared_per_cta = 1 << 10,
                      .threads_per_multiprocessor = 1536,
                      .ctas_per_multiprocessor = 16,
                      .clock = 1'695'000,
                      .memory_clock = 6'251'000,
                      .memory_bus_bits = 384};

/// The SM of an A10, for which more CTAs fit.
DeviceModel l40s()
{
    DeviceModel model = a10;
    model.key = "l40s";
    model.name = "NVIDIA L40S (emulated)";
    model.minor = 9;
    model.multiprocessors = 142;
    model.memory = 44ull << 30;
    model.l2_cache = 96ull << 20;
    model.ctas_per_multiprocessor = 24;
    model.clock = 2'520'000;
    model.memory_clock = 9'001'000;
    return model;
}

/// Compute capability 12.x has the limits of 8.9, and clusters, TMA and cluster launch control, but neither wgmma nor tensor memory.
DeviceModel rtx5090()
{
    DeviceModel model = l40s();
    model.key = "rtx5090";
    model.name = "NVIDIA GeForce RTX 5090 (emulated)";
    model.major = 12;
    model.minor = 0;
    model.multiprocessors = 170;
    model.memory = 31ull << 30;
    model.clock = 2'407'000;
    model.memory_clock = 14'001'000;
    model.memory_bus_bits = 512;
    model.max_cluster = 8;
    model.portable_cluster = 8;
    model.cluster_launch_control = true;
    return model;
}

/// DGX Spark. Its memory is the CPU's, too: 128 GB of LPDDR5X.
DeviceModel gb10()
{
    DeviceModel model = rtx5090();
    model.key = "gb10";
    model.name = "NVIDIA GB10 (emulated)";
    model.minor = 1;
    model.multiprocessors = 48;
    model.memory = 119ull << 30;
    model.l2_cache = 24ull << 20;
    model.clock = 2'418'000;
    model.memory_clock = 4'266'000;
    model.memory_bus_bits = 256;
    return model;
}

const DeviceModel t4{.key = "t4",
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
                     .memory_bus_bits = 256};

const std::array<DeviceModel, 11> models{b200, b300(), thor(), h200, h100(), a100, a10, l40s(), rtx5090(), gb10(), t4};

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
