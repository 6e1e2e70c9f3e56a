#pragma once

/// Configurations of the Hopper kernel that were measured to be faster than the cost model's choice: the shipped counterpart of
/// what a tuner finds. docs/notes/hopper-chooser.md says how the table is made.

#include <cstdint>
#include <span>
#include <string_view>

#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// The fastest configuration for a product of 16-bit matrices, whose A and B are contiguous along K.
struct MeasuredChoice {
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    std::string_view config;
    std::uint16_t clusters;
    std::uint8_t cluster_m;
    std::uint8_t cluster_n;
    std::uint8_t cluster_k;
    bool swapped;
    bool stream_k;
};

/// The whole table.
std::span<const MeasuredChoice> measured_choices();

/// Returns what was measured for a resolved problem, or for one with the same N and K and so few rows more that its tiles are the
/// same. Returns nullptr if nothing was.
const MeasuredChoice* find_measured(const GemmProblem& problem, const DeviceProperties& device);

/// Returns true if a Hopper choice for 16-bit matrices is the measured one, in any raster.
bool is_measured(const MeasuredChoice& measured, const KernelChoice& choice);

}  // namespace tessera::detail
