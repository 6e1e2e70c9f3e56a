#pragma once

/// Collects the facts about the machine that figures depend on.

#include "report/report.hpp"
#include "tessera/device.hpp"

namespace tessera::bench {

/// Date, device, clock, versions of driver, runtime, compiler and this library, and the CPU.
Environment environment_of(const Device& device);

/// The device's address as NVML and nvidia-smi write it: "0000:1A:00.0". Empty if it has none.
std::string pci_bus_id_of(const Device& device);

}  // namespace tessera::bench
