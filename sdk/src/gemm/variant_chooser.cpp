#include "gemm/variant_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "gemm/backend.hpp"
#include "gemm/variant_table.hpp"
#include "gemm/workspace.hpp"
#include "tessera/error.hpp"
#include "tuning/tuning_table.hpp"

namespace tessera {
namespace {

using detail::entry_of;
using detail::VariantEntry;
using detail::variants;

constexpr int lowest_compute_capability = 75;
/// Returns how many insertions, deletions and replacements of a letter turn one word into the other (Levenshtein).
std::size_t edits_between(std::string_view from, std::string_view to)
{
    std::vector<std::size_t> row(to.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 0; i < from.size(); ++i) {
        std::size_t diagonal = std::exchange(row[0], i + 1);
        for (std::size_t j = 0; j < to.size(); ++j) {
            const std::size_t exchanged = diagonal + (from[i] == to[j] ? 0 : 1);
            diagonal = row[j + 1];
            row[j + 1] = std::min({exchanged, row[j] + 1, diagonal + 1});
        }
    }
    return row.back();
}

std::string name_of(InputTypes input)
{
    return input.a == input.b ? std::string(to_string(input.a))
                              : fmt::format("{} x {}", to_string(input.a), to_string(input.b));
}

}  // namespace

std::string_view to_string(Variant variant) noexcept
{
    return variant == Variant::automatic ? "automatic" : entry_of(variant).name;
}

Variant variant_from_string(std::string_view name, std::source_location caller)
{
    std::vector<Variant> all = all_variants();
    all.insert(all.begin(), Variant::automatic);
    std::string names;
    Variant closest = Variant::automatic;
    std::size_t fewest_edits = std::numeric_limits<std::size_t>::max();
    for (const Variant variant : all) {
        const std::string_view known = to_string(variant);
        if (known == name) {
            return variant;
        }
        names += fmt::format("{}{}", names.empty() ? "" : ", ", known);
        if (const std::size_t edits = edits_between(name, known); edits < fewest_edits) {
            fewest_edits = edits;
            closest = variant;
        }
    }
    // More edits than a third of the word are not a typing error.
    const bool slipped = fewest_edits * 3 <= name.size();
    detail::raise(ErrorCode::invalid_argument, "variant_from_string", caller,
                  fmt::format("no variant is called '{}'{}", name,
                              slipped ? fmt::format("; did you mean {}?", to_string(closest)) : std::string()),
                  "one of " + names);
}

std::vector<Variant> all_variants()
{
    std::vector<Variant> all;
    for (const VariantEntry& entry : variants) {
        all.push_back(entry.variant);
    }
    std::sort(all.begin(), all.end());
    return all;
}

std::string GemmProblem::describe() const
{
    const auto order = [](const MatrixLayout& layout) { return layout.row_major ? "row-major" : "column-major"; };
    std::string text = fmt::format("{}x{}x{} (MxNxK) {} -> {}, A {}, B {}, D {}", m, n, k, name_of(input),
                                   to_string(output), order(a), order(b), order(d));
    if (outer_batches != 1) {
        text += fmt::format(", {}x{} batches", outer_batches, batches);
    } else if (batches != 1) {
        text += fmt::format(", {} batches", batches);
    }
    if (has_c) {
        text += ", with C";
    }
    if (bias != BiasAxis::none) {
        text += bias == BiasAxis::per_row ? ", bias per row" : ", bias per column";
    }
    if (row_scales || column_scales) {
        text += row_scales && column_scales ? ", scales per row and column"
                : row_scales                ? ", scales per row"
                                            : ", scales per column";
    }
    if (activation != Activation::none) {
        text += fmt::format(", {}", to_string(activation));
    }
    if (has_pre_activation) {
        text += ", pre-activation stored";
    }
    if (gating != Gating::none) {
        text += fmt::format(", gated pairs {}", gating == Gating::interleaved ? "interleaved" : "side by side");
    }
    if (is_float8(input) && fp8_accumulation == Fp8Accumulation::fast) {
        text += ", fast accumulation";
    }
    if (detail::allows_f16_sums(*this)) {
        text += ", sums in f16 allowed";
    }
    return text;
}

namespace detail {

std::string to_string(const Refusal& refusal, const DeviceProperties& device)
{
    switch (refusal.reason) {
        case Refusal::Reason::architecture:
            return fmt::format("{} has compute capability {}.{}; the kernel {}", device.name,
                               device.compute_capability_major, device.compute_capability_minor, refusal.needs);
        case Refusal::Reason::not_built:
            return fmt::format("this build of the library has no code for compute capability {}.{}",
                               refusal.required / 10, refusal.required % 10);
        case Refusal::Reason::needs_tf32:
            return "tensor cores would round f32 operands to tf32; to allow that, pass views of tf32";
        case Refusal::Reason::input_types:
            return fmt::format("the kernel is not compiled for inputs of {}", name_of(refusal.types));
        case Refusal::Reason::output_type:
            return fmt::format("a kernel writes f32, f16, bf16, f8e4m3 or f8e5m2, not {}", name_of(refusal.types));
        case Refusal::Reason::address_alignment:
            return fmt::format("{}'s address is {}-byte aligned; the kernel needs {}-byte alignment", refusal.operand,
                               refusal.found, refusal.required);
        case Refusal::Reason::leading_dimension:
            return fmt::format("{}'s leading dimension is {} bytes, not a multiple of {}", refusal.operand,
                               refusal.found, refusal.required);
        case Refusal::Reason::batch_stride:
            return fmt::format("{}'s batch stride is {} bytes, not a multiple of {}", refusal.operand, refusal.found,
                               refusal.required);
        case Refusal::Reason::grid_size:
            return fmt::format("the problem needs {} CTAs; a grid has at most {}", refusal.found, refusal.required);
        case Refusal::Reason::gated_pairs: return "the kernel does not compute gated pairs";
        case Refusal::Reason::side_by_side:
            return "a thread of the kernel has neighbouring columns only, so gated pairs must be interleaved";
        case Refusal::Reason::gated_operand:
            return fmt::format(
                "for gated pairs, the kernel loads {} by TMA only, which needs {}multiples of 16 bytes as address and "
                "strides",
                refusal.operand,
                refusal.operand == 'B' ? "a column-major B (or 16-bit pairs side by side) and "
                                       : "a row-major A (or 16-bit elements) and ");
        case Refusal::Reason::gated_batch:
            return "for gated pairs, the kernel needs a single B for all matrices of a batch";
    }
    return "unknown";
}

void require_valid(const GemmProblem& problem, std::string_view operation, const std::source_location& caller)
{
    if (problem.m < 0 || problem.n < 0 || problem.k < 0 || problem.batches < 0) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("a product cannot have extents {}x{}x{} and {} batches", problem.m, problem.n, problem.k,
                          problem.batches),
              "extents of 0 or more");
    }
    if (problem.outer_batches < 0) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("a product cannot have {} outer batches", problem.outer_batches), "0 or more");
    }
    if (problem.max_sms < 0) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("a product cannot run on at most {} SMs", problem.max_sms), "1 or more, or 0 for all");
    }
    if (problem.gating != Gating::none && problem.n % 2 != 0) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("{} columns do not make pairs of a gate and a factor", problem.n), "an even n");
    }
    if (problem.gating != Gating::none && problem.has_c) {
        raise(ErrorCode::invalid_argument, operation, caller, "a product of gated pairs cannot add C",
              "add C in the next product, or clear problem.has_c");
    }
    if (problem.gating != Gating::none && problem.has_pre_activation) {
        raise(ErrorCode::invalid_argument, operation, caller,
              "a product of gated pairs cannot store the pre-activation",
              "compute the pairs without gating, or clear problem.has_pre_activation");
    }
    if (!can_multiply(problem.input)) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("A has elements of {} and B of {}", tessera::to_string(problem.input.a),
                          tessera::to_string(problem.input.b)),
              "equal types; only f8e4m3 and f8e5m2 can be mixed");
    }
    if (!is_output(problem.output)) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("D cannot have elements of {}", tessera::to_string(problem.output)),
              "f32, f16, bf16, f8e4m3 or f8e5m2");
    }
    const auto require_layout = [&](std::string_view name, const MatrixLayout& layout, std::int64_t rows,
                                    std::int64_t columns) {
        const std::int64_t vector_size = layout.row_major ? columns : rows;
        if (layout.leading_dimension != 0 && layout.leading_dimension < vector_size) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  fmt::format("{} is {}x{} {} and has leading dimension {}", name, rows, columns,
                              layout.row_major ? "row-major" : "column-major", layout.leading_dimension),
                  fmt::format("a leading dimension of at least {}, or 0 for no gaps", vector_size));
        }
        if (layout.batch_stride < 0) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  fmt::format("{} has a batch stride of {}", name, layout.batch_stride), "a stride of 0 or more");
        }
        if (layout.outer_stride < 0) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  fmt::format("{} has an outer stride of {}", name, layout.outer_stride), "a stride of 0 or more");
        }
        if (layout.address_alignment == 0 || (layout.address_alignment & (layout.address_alignment - 1)) != 0) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  fmt::format("{} has an address alignment of {} bytes", name, layout.address_alignment),
                  "a power of two");
        }
    };
    require_layout("A", problem.a, problem.m, problem.k);
    require_layout("B", problem.b, problem.k, problem.n);
    require_layout("D", problem.d, problem.m, problem.d_columns());
    require_layout("C", problem.c, problem.m, problem.n);
    require_layout("the pre-activation", problem.pre_activation, problem.m, problem.n);
    // Views have fewer than 2^63 bytes, so a larger problem cannot have operands.
    const auto require_size = [&](char name, const MatrixLayout& layout, ElementType type, std::int64_t rows,
                                  std::int64_t columns) {
        const std::int64_t vectors = layout.row_major ? rows : columns;
        const std::int64_t run = layout.row_major ? columns : rows;
        const std::int64_t leading_dimension = layout.leading_dimension == 0 ? run : layout.leading_dimension;
        if (vectors == 0 || run == 0 || problem.batches == 0 || problem.outer_batches == 0) {
            return;
        }
        std::int64_t lines = 0;
        std::int64_t matrices = 0;
        std::int64_t outer = 0;
        std::int64_t bytes = 0;
        if (__builtin_mul_overflow(vectors - 1, leading_dimension, &lines) ||
            __builtin_mul_overflow(problem.batches - 1, layout.batch_stride, &matrices) ||
            __builtin_mul_overflow(problem.outer_batches - 1, layout.outer_stride, &outer) ||
            __builtin_add_overflow(lines, run, &lines) || __builtin_add_overflow(lines, matrices, &bytes) ||
            __builtin_add_overflow(bytes, outer, &bytes) ||
            __builtin_mul_overflow(bytes, static_cast<std::int64_t>(size_of(type)), &bytes)) {
            raise(ErrorCode::size_overflow, operation, caller,
                  fmt::format("{} is {} of {}x{} elements of {} bytes, {}-major with leading dimension {} and batch "
                              "stride {}{}: its size does not fit into 63 bits",
                              name, problem.batches, rows, columns, size_of(type), layout.row_major ? "row" : "column",
                              leading_dimension, layout.batch_stride,
                              problem.outer_batches == 1 ? std::string()
                                                         : fmt::format(", {} times at an outer stride of {}",
                                                                       problem.outer_batches, layout.outer_stride)),
                  "compute extents, leading dimensions and strides in elements, and in std::int64_t from the start");
        }
    };
    require_size('A', problem.a, problem.input.a, problem.m, problem.k);
    require_size('B', problem.b, problem.input.b, problem.k, problem.n);
    require_size('D', problem.d, problem.output, problem.m, problem.d_columns());
}

GemmProblem resolved(GemmProblem problem) noexcept
{
    const auto fill_in = [](MatrixLayout& layout, std::int64_t rows, std::int64_t columns) {
        if (layout.leading_dimension == 0) {
            layout.leading_dimension = std::max<std::int64_t>(layout.row_major ? columns : rows, 1);
        }
    };
    fill_in(problem.a, problem.m, problem.k);
    fill_in(problem.b, problem.k, problem.n);
    fill_in(problem.d, problem.m, problem.d_columns());
    problem.row_scales = problem.row_scales && problem.m > 1;  // one row's scale is that of all of A
    problem.column_scales = problem.column_scales && problem.n > 1;
    return problem;
}

std::optional<Refusal> find_refusal(Variant variant, const GemmProblem& problem, const DeviceProperties& device)
{
    using Reason = Refusal::Reason;
    if (device.compute_capability() < lowest_compute_capability) {
        return Refusal{.reason = Reason::architecture, .needs = "needs 7.5 or later"};
    }
    if (!is_output(problem.output)) {
        return Refusal{Reason::output_type, ' ', 0, 0, problem.output};
    }
    return backend_of(variant).find_refusal(variant, {problem, device});
}

Variant preferred_variant(const GemmProblem& problem, const DeviceProperties& device)
{
    const auto eligible = std::ranges::find_if(
        variants, [&](const VariantEntry& entry) { return !find_refusal(entry.variant, problem, device); });
    if (eligible == variants.end()) {
        return Variant::automatic;
    }
    const std::optional<Variant> faster = eligible->backend().faster_variant({problem, device});
    return faster && !find_refusal(*faster, problem, device) ? *faster : eligible->variant;
}

KernelChoice choose_kernel(const GemmProblem& problem, const DeviceProperties& device, Variant wanted,
                           std::string_view operation, const std::source_location& caller, std::size_t workspace_limit)
{
    if (wanted == Variant::automatic) {
        const std::optional<TunedChoice> tuned = find_valid_tuned(problem, device);
        if (tuned && (workspace_limit == unlimited_workspace ||
                      workspace_bytes(workspace_need(problem, tuned->choice)) <= workspace_limit)) {
            return tuned->choice;
        }
    }
    return choose_untuned(problem, device, wanted, operation, caller, workspace_limit);
}

KernelChoice choose_untuned(const GemmProblem& problem, const DeviceProperties& device, Variant wanted,
                            std::string_view operation, const std::source_location& caller, std::size_t workspace_limit)
{
    if (wanted != Variant::automatic) {
        if (const auto refusal = find_refusal(wanted, problem, device)) [[unlikely]] {
            raise(ErrorCode::variant_refused, operation, caller,
                  fmt::format("{} cannot run {}: {}", tessera::to_string(wanted), problem.describe(),
                              to_string(*refusal, device)),
                  "Variant::automatic, which chooses a variant that can");
        }
        return backend_of(wanted).choose(wanted, {problem, device}, workspace_limit);
    }
    if (const Variant variant = preferred_variant(problem, device); variant != Variant::automatic) {
        return backend_of(variant).choose(variant, {problem, device}, workspace_limit);
    }
    const Refusal refusal = find_refusal(variants.back().variant, problem, device).value();
    const bool too_old = refusal.reason == Refusal::Reason::architecture;
    raise(too_old ? ErrorCode::unsupported_device : ErrorCode::variant_refused, operation, caller,
          fmt::format("no variant can run {}: {}", problem.describe(), to_string(refusal, device)),
          too_old ? "a device of compute capability 7.5 or later" : "split the problem");
}

std::size_t required_alignment(Variant variant, InputTypes input) noexcept
{
    // Each device has a variant that takes any alignment.
    return variant == Variant::automatic ? size_of(input) : backend_of(variant).required_alignment(variant, input);
}

}  // namespace detail
}  // namespace tessera
