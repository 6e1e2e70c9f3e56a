#pragma once

// The GPUs that can be emulated, as numbers.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace tessera::emulator {

/// The properties of a device that a program can query. Sizes in bytes, clocks in kHz.
struct DeviceModel {
    std::string key;   ///< "b200"
    std::string name;  ///< "NVIDIA B200 (emulated)"
    unsigned major = 0, minor = 0;
    unsigned multiprocessors = 0;
    std::uint64_t memory = 0;
    std::uint64_t l2_cache = 0;
    unsigned shared_per_multiprocessor = 0;
    unsigned shared_per_cta = 49152;  ///< without opt-in
    unsigned shared_per_cta_optin = 0;
    unsigned reserved_shared_per_cta = 0;
    unsigned registers_per_multiprocessor = 65536;
    unsigned threads_per_multiprocessor = 0;
    unsigned ctas_per_multiprocessor = 0;
    unsigned clock = 0, memory_clock = 0, memory_bus_bits = 0;
    unsigned max_cluster = 0;  ///< 0: no clusters
    unsigned portable_cluster = 0;
    bool tensor_memory = false;
    bool cluster_launch_control = false;

    [[nodiscard]] unsigned capability() const noexcept { return 10 * major + minor; }
};

/// b200, b300, thor, h200, h100, a100, a10, l40s, rtx5090, gb10, t4.
[[nodiscard]] std::span<const DeviceModel> device_models();

/// The model with this key; null if there is none.
[[nodiscard]] const DeviceModel* find_device_model(std::string_view key);

/// Returns true if PTX for `target` ("sm_90a") can be compiled for this device. Plain targets are forward compatible,
/// "a" targets are for exactly one chip, "f" targets for one family (PTX ISA ".target").
[[nodiscard]] bool runs_target(const DeviceModel& device, std::string_view target);

}  // namespace tessera::emulator
