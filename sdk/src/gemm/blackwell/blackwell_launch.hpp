#pragma once

/// The Blackwell side of a launch: eligibility, shared-memory layouts, tensor maps, grid.

#include <cstddef>
#include <optional>

#include "base/call_status.hpp"
#include "gemm/encoded_launch.hpp"
#include "gemm/variant_chooser.hpp"
#include "kernels/blackwell/blackwell_arguments.hpp"
#include "kernels/blackwell/blackwell_kernels.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// The first compute capability of the family that the kernels are compiled for.
inline constexpr int blackwell_compute_capability = 100;

/// Returns true if a variant is a rung of the Blackwell ladder; `blackwell_rung` returns which.
constexpr bool is_blackwell(Variant variant) noexcept { return variant >= Variant::blackwell_tiled; }
constexpr kernels::BlackwellRung blackwell_rung(Variant variant) noexcept
{
    return static_cast<kernels::BlackwellRung>(static_cast<int>(variant) - static_cast<int>(Variant::blackwell_tiled));
}

/// Returns nothing if the rung gives the right answer for `problem` on `device`. `problem` must be resolved.
std::optional<Refusal> find_blackwell_refusal(Variant variant, const GemmProblem& problem,
                                              const DeviceProperties& device);

/// Returns all kernel parameters except tensor maps, which need a driver. Exposed for tests.
kernels::BlackwellArguments blackwell_arguments(kernels::BlackwellRung rung, const kernels::GemmArguments& gemm,
                                                std::int64_t batches, int sm_count);

/// Fills in `launch`. The device must be current and the problem eligible.
CallStatus encode_blackwell(EncodedLaunch& launch, const GemmProblem& problem, Variant variant,
                            const kernels::GemmArguments& arguments, const DeviceProperties& device);

}  // namespace tessera::detail
