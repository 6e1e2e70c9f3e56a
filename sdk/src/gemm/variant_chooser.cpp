#include "gemm/variant_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "gemm/blackwell/blackwell_chooser.hpp"
#include "gemm/blackwell/blackwell_launch.hpp"
#include "gemm/hopper/hopper_chooser.hpp"
#include "gemm/hopper/hopper_launch.hpp"
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
constexpr std::int64_t max_ctas = 0x7FFFFFFF;

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return value / by + (value % by != 0 ? 1 : 0); }

/// `SimtOrders::whole_chunks` for one operand with runs of `run` elements. The layouts are those of the actual operands
/// (a plan compares them at each launch), so the promise holds.
bool has_whole_chunks(const MatrixLayout& layout, std::int64_t run, const GemmProblem& problem)
{
    const std::size_t chunk_bytes = kernels::simt_chunk * size_of(problem.input);
    return layout.address_alignment % chunk_bytes == 0 && run % kernels::simt_chunk == 0 &&
           layout.leading_dimension % kernels::simt_chunk == 0 &&
           (problem.batches == 1 || layout.batch_stride % kernels::simt_chunk == 0);
}

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
    if (activation != Activation::none) {
        text += fmt::format(", {}", to_string(activation));
    }
    if (has_pre_activation) {
        text += ", pre-activation stored";
    }
    if (is_float8(input) && fp8_accumulation == Fp8Accumulation::fast) {
        text += ", fast accumulation";
    }
    return text;
}

namespace detail {

std::string to_string(const Refusal& refusal, const DeviceProperties& device)
{
    switch (refusal.reason) {
        case Refusal::Reason::architecture:
            return fmt::format("{} has compute capability {}.{}; the kernel {} {}.{}{}", device.name,
                               device.compute_capability_major, device.compute_capability_minor,
                               refusal.required == lowest_compute_capability ? "needs" : "is for",
                               refusal.required / 10, refusal.required % 10,
                               refusal.required == lowest_compute_capability      ? " or later"
                               : refusal.required == blackwell_compute_capability ? " and 10.3 only"
                                                                                  : " only");
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
    require_layout("D", problem.d, problem.m, problem.n);
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
    require_size('D', problem.d, problem.output, problem.m, problem.n);
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
    fill_in(problem.d, problem.m, problem.n);
    return problem;
}

kernels::SimtKernel simt_kernel_of(Variant variant, const GemmProblem& problem, const DeviceProperties& device)
{
    // The kernels write rows of D. A column-major D is computed as the transposed product, B^T * A^T.
    const bool direct = problem.d.row_major;
    const std::int64_t rows = direct ? problem.m : problem.n;
    const std::int64_t columns = direct ? problem.n : problem.m;
    const bool whole_chunks = has_whole_chunks(problem.a, problem.a.row_major ? problem.k : problem.m, problem) &&
                              has_whole_chunks(problem.b, problem.b.row_major ? problem.n : problem.k, problem);
    const kernels::SimtOrders orders{.a_k_contiguous = direct ? problem.a.row_major : !problem.b.row_major,
                                     .b_k_contiguous = direct ? !problem.b.row_major : problem.a.row_major,
                                     .whole_chunks = whole_chunks};
    return kernels::simt_kernel(entry_of(variant).rung, problem.input,
                                kernels::choose_simt_tile(rows, columns, problem.batches, device.sm_count), orders);
}

std::optional<Refusal> find_refusal(Variant variant, const GemmProblem& problem, const DeviceProperties& device)
{
    using Reason = Refusal::Reason;
    if (device.compute_capability() < lowest_compute_capability) {
        return Refusal{Reason::architecture, ' ', device.compute_capability(), lowest_compute_capability};
    }
    if (!is_output(problem.output)) {
        return Refusal{Reason::output_type, ' ', 0, 0, problem.output};
    }
    if (variant == Variant::hopper) {
        return find_hopper_refusal(problem, device);
    }
    if (is_blackwell(variant)) {
        return find_blackwell_refusal(variant, problem, device);
    }
    if (!kernels::simt_takes(entry_of(variant).rung, problem.input)) {
        return Refusal{Reason::input_types, ' ', 0, 0, problem.input};
    }
    const kernels::SimtKernel kernel = simt_kernel_of(variant, problem, device);
    const auto required = static_cast<std::int64_t>(kernel.required_alignment);
    const auto element_bytes = static_cast<std::int64_t>(size_of(problem.input));

    struct Side {
        char name;
        const MatrixLayout& layout;
        std::int64_t vectors;
    };
    const std::array sides{Side{'A', problem.a, problem.a.row_major ? problem.m : problem.k},
                           Side{'B', problem.b, problem.b.row_major ? problem.k : problem.n}};
    for (const Side& side : sides) {
        const auto address = static_cast<std::int64_t>(side.layout.address_alignment);
        const std::int64_t stride = side.layout.leading_dimension * element_bytes;
        const std::int64_t batch = side.layout.batch_stride * element_bytes;
        if (address % required != 0) {
            return Refusal{Reason::address_alignment, side.name, address, required};
        }
        if (side.vectors > 1 && stride % required != 0) {
            return Refusal{Reason::leading_dimension, side.name, stride, required};
        }
        if (problem.batches > 1 && batch % required != 0) {
            return Refusal{Reason::batch_stride, side.name, batch, required};
        }
    }
    const std::int64_t rows = problem.d.row_major ? problem.m : problem.n;
    const std::int64_t columns = problem.d.row_major ? problem.n : problem.m;
    std::int64_t ctas = 0;
    if (__builtin_mul_overflow(divide_up(rows, kernel.block_m), divide_up(columns, kernel.block_n), &ctas) ||
        __builtin_mul_overflow(ctas, problem.batches, &ctas)) {
        ctas = std::numeric_limits<std::int64_t>::max();
    }
    if (ctas > max_ctas) {
        return Refusal{Reason::grid_size, ' ', ctas, max_ctas};
    }
    return std::nullopt;
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
    // Hopper has a configuration without a workspace for every eligible problem: kernels with the fallback load accept
    // operands that others need repacked.
    const auto choice_of = [&](Variant variant) {
        return variant == Variant::hopper ? choose_hopper(problem, device, workspace_limit)
                                          : KernelChoice{.variant = variant};
    };
    if (wanted != Variant::automatic) {
        if (const auto refusal = find_refusal(wanted, problem, device)) [[unlikely]] {
            raise(ErrorCode::variant_refused, operation, caller,
                  fmt::format("{} cannot run {}: {}", tessera::to_string(wanted), problem.describe(),
                              to_string(*refusal, device)),
                  "Variant::automatic, which chooses a variant that can");
        }
        return choice_of(wanted);
    }
    for (const VariantEntry& entry : variants) {
        if (!find_refusal(entry.variant, problem, device)) {
            return choice_of(is_blackwell(entry.variant) ? choose_blackwell(problem, device) : entry.variant);
        }
    }
    const Refusal refusal = find_refusal(variants.back().variant, problem, device).value();
    const bool too_old = refusal.reason == Refusal::Reason::architecture;
    raise(too_old ? ErrorCode::unsupported_device : ErrorCode::variant_refused, operation, caller,
          fmt::format("no variant can run {}: {}", problem.describe(), to_string(refusal, device)),
          too_old ? "a device of compute capability 7.5 or later" : "split the problem");
}

std::size_t required_alignment(Variant variant, InputTypes input) noexcept
{
    if (variant == Variant::automatic || variant == Variant::hopper || is_blackwell(variant)) {
        return size_of(input);  // the fallback load serves operands that TMA cannot address
    }
    // The same for every tile of a variant, so any problem and device will do.
    GemmProblem problem;
    problem.input = input;
    return simt_kernel_of(variant, problem, DeviceProperties{}).required_alignment;
}

}  // namespace detail
}  // namespace tessera
