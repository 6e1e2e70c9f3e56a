#pragma once

// Runs the cases of the hardware probes on the emulator's arithmetic.

#include <cstdint>
#include <vector>

#include "../hardware/probe_inputs.hpp"

namespace tessera::probe {

/// D of every instance as the probe writes it: [instance][m][n] cells of the D type.
std::vector<unsigned char> emulate(const Case& test, const Problem& problem, int instances);

/// The results of one scalar instruction for the operands of the probe; empty if the name is unknown here.
std::vector<std::uint64_t> emulate_scalar(std::string_view name);

}  // namespace tessera::probe
