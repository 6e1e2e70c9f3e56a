#pragma once

/// Chooses a kernel variant for a problem.
///
/// Terminology: a *variant* is a compiled kernel configuration; it is *eligible* if it gives the right answer for the
/// problem on the device; *preference* orders the eligible variants by expected speed.
///
/// Principles, in order:
///   1. Right before fast: eligibility never depends on preference.
///   2. The same problem, device model and build give the same choice; nothing is timed without the user's knowledge.
///   3. A refusal is data: every variant that was passed over has a reason that `explain()` can print.
///
/// Calls no CUDA: the device is a plain struct of facts, so all of this runs on any machine. Allocates only the texts.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include "tessera/detail/kernel_choice.hpp"
#include "tessera/device.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::detail {

/// The reason why a variant is not eligible.
struct Refusal {
    enum class Reason : std::uint8_t {
        architecture,
        not_built,
        needs_tf32,
        input_types,
        output_type,
        address_alignment,
        leading_dimension,
        batch_stride,
        grid_size,
        gated_pairs,
        side_by_side,
        gated_operand,
        gated_batch
    };
    Reason reason;
    char operand = ' ';         // 'A' or 'B', for the reasons about one operand
    std::int64_t found = 0;     // the value that breaks the rule: bytes, or CTAs
    std::int64_t required = 0;  // its required multiple, or the most allowed
    InputTypes types = {};      // types of the inputs; for an output, both are its type
    std::string_view needs{};   // for `architecture`, e.g. "is for 9.0 only"
};

/// Returns a sentence, e.g. "B's leading dimension is 4094 bytes, not a multiple of 16".
std::string to_string(const Refusal& refusal, const DeviceProperties& device);

/// Refuses extents and strides that no variant could run with. @throws Error `invalid_argument`
void require_valid(const GemmProblem& problem, std::string_view operation, const std::source_location& caller);

/// Fills in the leading dimensions that are given as 0 ("no gaps"), and drops the scale vectors of a single row or column.
GemmProblem resolved(GemmProblem problem) noexcept;

/// Returns true if the kernels are given the transposed product, D^T = B^T * A^T. They write rows of D. Gated pairs are
/// never transposed, because that would make them pairs of rows.
inline bool is_transposed(const GemmProblem& problem) noexcept
{
    return !problem.d.row_major && problem.gating == Gating::none;
}

/// Returns true if sums may be in f16.
inline bool allows_f16_sums(const GemmProblem& problem) noexcept
{
    return problem.input == InputTypes(ElementType::f16) && problem.f16_accumulation == F16Accumulation::in_f16;
}

/// Returns the variant that `automatic` runs without a tuned choice, or `automatic` if no variant can. `problem` must be
/// resolved.
Variant preferred_variant(const GemmProblem& problem, const DeviceProperties& device);

/// Returns nothing if `variant` is eligible. `problem` must be resolved.
std::optional<Refusal> find_refusal(Variant variant, const GemmProblem& problem, const DeviceProperties& device);

/// No limit on the workspace.
inline constexpr std::size_t unlimited_workspace = std::numeric_limits<std::size_t>::max();

/// Returns the preferred kernel of the eligible variants, or of `wanted` if it is eligible, among those that need a
/// workspace of at most `workspace_limit` bytes.
/// @throws Error `variant_refused` with the reason, `unsupported_device` if no variant is eligible
KernelChoice choose_untuned(const GemmProblem& problem, const DeviceProperties& device, Variant wanted,
                            std::string_view operation, const std::source_location& caller,
                            std::size_t workspace_limit = unlimited_workspace);

/// The same, but an automatic choice is the measured one if tuning_table.hpp has one within the limit.
KernelChoice choose_kernel(const GemmProblem& problem, const DeviceProperties& device, Variant wanted,
                           std::string_view operation, const std::source_location& caller,
                           std::size_t workspace_limit = unlimited_workspace);

/// Returns the alignment in bytes that a variant requires of A's and B's addresses and strides.
std::size_t required_alignment(Variant variant, InputTypes input) noexcept;

/// The text of explain(): the choice, its reason, and a line for every other variant. `made` is a choice that was made
/// earlier.
std::string explain_choice(const GemmProblem& problem, const DeviceProperties& device, Variant wanted,
                           std::optional<KernelChoice> made = std::nullopt);

}  // namespace tessera::detail
