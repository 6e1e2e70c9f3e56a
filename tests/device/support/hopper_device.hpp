#pragma once

/// For tests of the Hopper kernels alone: the device, and whether it has them.

#include <doctest/doctest.h>

#include "kernels/hopper/hopper_kernels.hpp"
#include "tessera/device.hpp"

namespace tessera::test {

inline const DeviceProperties& device() { return Device::current().properties(); }

/// Returns true if the device has the kernels; otherwise says so.
inline bool is_hopper_here()
{
    if (device().compute_capability() != 90) {
        MESSAGE("skipped: the device does not have compute capability 9.0");
        return false;
    }
    if (kernels::hopper_kernels(2).empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return false;
    }
    return true;
}

}  // namespace tessera::test
