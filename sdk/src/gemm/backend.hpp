#pragma once

/// What the library asks of the kernels of one architecture. Checks, choices, plans, tuning and explain() know kernels
/// only through this interface, so that an architecture is one folder of kernels and one backend.
///
/// Backends have no state: there is one static instance of each, and all functions may be called from several threads.
/// Every problem is resolved and has one level of batches.

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/call_status.hpp"
#include "gemm/encoded_launch.hpp"
#include "gemm/variant_chooser.hpp"
#include "gemm/workspace_need.hpp"
#include "kernels/gemm/gemm_arguments.hpp"
#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// What one of the backend's variants is asked to compute.
struct GemmRequest {
    const GemmProblem& problem;
    const DeviceProperties& device;
};

class Backend {
public:
    /// Returns true if the kernels are for this device and use its tensor cores.
    virtual bool has_tensor_cores_of(const DeviceProperties& device) const noexcept = 0;

    /// Returns nothing if `variant` gives the right answer.
    virtual std::optional<Refusal> find_refusal(Variant variant, const GemmRequest& request) const = 0;
    /// Returns a variant, later in the order of preference, that was measured faster for such problems and runs this one if it
    /// is eligible.
    virtual std::optional<Variant> faster_variant(const GemmRequest& request) const;
    /// Returns the alignment in bytes that a variant requires of A's and B's addresses and strides.
    virtual std::size_t required_alignment(Variant variant, InputTypes input) const noexcept = 0;

    /// Returns the kernel of an eligible variant, with a workspace of at most `workspace_limit` bytes.
    virtual KernelChoice choose(Variant variant, const GemmRequest& request, std::size_t workspace_limit) const;
    /// Adds the kernels of an eligible variant that a tuner may try.
    virtual void add_candidates(Variant variant, const GemmRequest& request, std::vector<KernelChoice>& to) const;
    /// Returns true if a choice that was read from a file can run; its variant is eligible.
    virtual bool is_valid(const GemmRequest& request, const KernelChoice& choice) const;
    /// Returns the alignment of A and B that a plan's kernel needs to run as it was planned.
    virtual std::size_t planned_alignment(Variant variant, InputTypes input) const noexcept;
    /// Returns true if a launch of a plan treats operands as no better aligned than they were planned.
    virtual bool keeps_planned_alignment() const noexcept;

    /// Names of the configurations that files name, by KernelChoice::config; empty if there is one per variant.
    virtual std::string_view config_name(InputTypes input, std::uint8_t config) const noexcept;
    /// Describes the configuration, e.g. "Tile128x256, 66 clusters of 2x1x1 CTAs"; empty if there is one per variant.
    virtual std::string describe_config(const GemmProblem& problem, const KernelChoice& choice) const;
    /// Continues the name of the variant in explain(): "with a 64x64 tile per CTA of 256 threads".
    virtual std::string describe(const GemmRequest& request, const KernelChoice& choice) const = 0;

    /// Returns what a launch needs besides its operands.
    virtual WorkspaceNeed workspace(const GemmProblem& problem, const KernelChoice& choice) const;
    /// Fills in `launch`. The device is current, the problem eligible, and `memory` meets the need.
    virtual CallStatus encode(EncodedLaunch& launch, const GemmRequest& request, const KernelChoice& choice,
                              const kernels::GemmArguments& arguments, const WorkspaceMemory& memory) const = 0;

protected:
    ~Backend() = default;
};

const Backend& simt_backend() noexcept;
const Backend& hopper_backend() noexcept;
const Backend& blackwell_backend() noexcept;
const Backend& mma_backend() noexcept;

/// Returns the backend of a variant that is not `automatic`.
const Backend& backend_of(Variant variant) noexcept;

/// Returns true if the library has kernels for the device's tensor cores.
bool has_tensor_core_kernels(const DeviceProperties& device) noexcept;

}  // namespace tessera::detail
