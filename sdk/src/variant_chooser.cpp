#include "variant_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>

#include "blackwell_chooser.hpp"
#include "blackwell_launch.hpp"
#include "gemm_batches.hpp"
#include "hopper_chooser.hpp"
#include "hopper_launch.hpp"
#include "tessera/error.hpp"
#include "tuning_table.hpp"

namespace tessera {
namespace {

struct VariantEntry {
    Variant variant;
    std::string_view name;
    kernels::SimtRung rung;     // of the SIMT variants
    std::string_view strength;  // for explain(): what it is good at
};

// In order of preference, fastest first. docs/simt-ladder.md has the measurements behind the order.
constexpr std::array variants{
    VariantEntry{Variant::hopper, "hopper", {}, "the tensor cores of compute capability 9.0, fed by TMA"},
    VariantEntry{Variant::blackwell_cta_pair_256,
                 "blackwell_cta_pair_256",
                 {},
                 "the most products per byte whose epilogue still hides under the next tile"},
    VariantEntry{Variant::blackwell_cta_pair_512,
                 "blackwell_cta_pair_512",
                 {},
                 "has no room to overlap a tile's epilogue with the next tile"},
    VariantEntry{Variant::blackwell_cta_pair, "blackwell_cta_pair", {}, "reads more bytes per product"},
    VariantEntry{Variant::blackwell_clc_multicast,
                 "blackwell_clc_multicast",
                 {},
                 "each CTA reads all of B from its own shared memory"},
    VariantEntry{Variant::blackwell_clc, "blackwell_clc", {}, "each CTA loads all of its operands itself"},
    VariantEntry{Variant::blackwell_persistent, "blackwell_persistent", {}, "its tiles are dealt out beforehand"},
    VariantEntry{Variant::blackwell_warp_specialized,
                 "blackwell_warp_specialized",
                 {},
                 "no overlap of a tile's epilogue with the next tile"},
    VariantEntry{Variant::blackwell_pipelined, "blackwell_pipelined", {}, "one thread loads and multiplies"},
    VariantEntry{Variant::blackwell_swizzled, "blackwell_swizzled", {}, "waits for every load"},
    VariantEntry{Variant::blackwell_tiled, "blackwell_tiled", {}, "loads 16 bytes of a row at a time"},
    VariantEntry{Variant::simt_register_blocked, "simt_register_blocked", kernels::SimtRung::register_blocked,
                 "the fastest SIMT rung at every measured size, and takes any alignment"},
    VariantEntry{Variant::simt_coarsened, "simt_coarsened", kernels::SimtRung::coarsened,
                 "reuses each loaded element along one dimension only"},
    VariantEntry{Variant::simt_vectorized, "simt_vectorized", kernels::SimtRung::vectorized,
                 "reads shared memory for every product"},
    VariantEntry{Variant::simt_tiled, "simt_tiled", kernels::SimtRung::tiled, "reads shared memory element by element"},
    VariantEntry{Variant::simt_naive, "simt_naive", kernels::SimtRung::naive, "reads global memory for every product"},
};

const VariantEntry& entry_of(Variant variant)
{
    return *std::find_if(variants.begin(), variants.end() - 1,
                         [&](const VariantEntry& entry) { return entry.variant == variant; });
}

constexpr bool is_simt(Variant variant) { return variant < Variant::hopper; }

constexpr int lowest_compute_capability = 75;
constexpr std::int64_t max_ctas = 0x7FFFFFFF;

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return value / by + (value % by != 0 ? 1 : 0); }

/// `SimtOrders::whole_chunks` for one operand, whose runs have `run` elements. Layouts are those of the operands at
/// hand (a plan compares them at each launch), so the promise holds.
bool has_whole_chunks(const MatrixLayout& layout, std::int64_t run, const GemmProblem& problem)
{
    const std::size_t chunk_bytes = kernels::simt_chunk * size_of(problem.input);
    return layout.address_alignment % chunk_bytes == 0 && run % kernels::simt_chunk == 0 &&
           layout.leading_dimension % kernels::simt_chunk == 0 &&
           (problem.batches == 1 || layout.batch_stride % kernels::simt_chunk == 0);
}

/// What was measured, and how long ago.
std::string describe_tuned(const detail::TunedChoice& tuned)
{
    const std::int64_t now =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    constexpr std::int64_t hour = 3600;
    const std::int64_t hours = std::max<std::int64_t>(now - tuned.when, 0) / hour;
    return fmt::format("measured {} ago as the fastest: {:.2f} us, the untuned choice took {:.2f} us",
                       hours < 48 ? fmt::format("{} hours", hours) : fmt::format("{} days", hours / 24),
                       tuned.seconds * 1e6, tuned.untuned_seconds * 1e6);
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
    std::string names = "automatic";
    if (name == names) {
        return Variant::automatic;
    }
    for (const Variant variant : all_variants()) {
        if (to_string(variant) == name) {
            return variant;
        }
        names += fmt::format(", {}", to_string(variant));
    }
    detail::raise(ErrorCode::invalid_argument, "variant_from_string", caller,
                  fmt::format("no variant is called '{}'", name), "one of " + names);
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
            return "tensor cores would round f32 operands to tf32, which has to be asked for: pass views of tf32";
        case Refusal::Reason::input_types:
            return fmt::format("the kernel is not compiled for inputs of {}", name_of(refusal.types));
        case Refusal::Reason::output_type:
            return fmt::format("a kernel writes f32, f16 or bf16, not {}", name_of(refusal.types));
        case Refusal::Reason::address_alignment:
            return fmt::format("{}'s address is a multiple of {} bytes, the kernel needs a multiple of {}",
                               refusal.operand, refusal.found, refusal.required);
        case Refusal::Reason::leading_dimension:
            return fmt::format("{}'s leading dimension is {} bytes, not a multiple of {}", refusal.operand,
                               refusal.found, refusal.required);
        case Refusal::Reason::batch_stride:
            return fmt::format("{}'s batch stride is {} bytes, not a multiple of {}", refusal.operand, refusal.found,
                               refusal.required);
        case Refusal::Reason::grid_size:
            return fmt::format("the problem takes {} CTAs, a grid has at most {}", refusal.found, refusal.required);
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
              fmt::format("D has elements of {}", tessera::to_string(problem.output)), "f32, f16 or bf16");
    }
    const auto require_layout = [&](char name, const MatrixLayout& layout, std::int64_t rows, std::int64_t columns) {
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
    require_layout('A', problem.a, problem.m, problem.k);
    require_layout('B', problem.b, problem.k, problem.n);
    require_layout('D', problem.d, problem.m, problem.n);
    require_layout('C', problem.c, problem.m, problem.n);
    // Views cannot be larger than what 63 bits can count, so a problem that is has no operands.
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
                              "stride {}{}: more bytes than 63 bits can count",
                              name, problem.batches, rows, columns, size_of(type), layout.row_major ? "row" : "column",
                              leading_dimension, layout.batch_stride,
                              problem.outer_batches == 1
                                  ? std::string()
                                  : fmt::format(", {} times at an outer stride of {}", problem.outer_batches,
                                                layout.outer_stride)),
                  "extents, leading dimensions and strides in elements, and computed in std::int64_t from the start");
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
    // The kernels write rows of D: a column-major D is computed as the transposed product, B^T * A^T.
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
                           std::string_view operation, const std::source_location& caller)
{
    if (wanted == Variant::automatic) {
        if (const std::optional<TunedChoice> tuned = find_valid_tuned(problem, device)) {
            return tuned->choice;
        }
    }
    return choose_untuned(problem, device, wanted, operation, caller);
}

KernelChoice choose_untuned(const GemmProblem& problem, const DeviceProperties& device, Variant wanted,
                            std::string_view operation, const std::source_location& caller)
{
    const auto choice_of = [&](Variant variant) {
        return variant == Variant::hopper ? choose_hopper(problem, device) : KernelChoice{.variant = variant};
    };
    if (wanted != Variant::automatic) {
        if (const auto refusal = find_refusal(wanted, problem, device)) [[unlikely]] {
            raise(ErrorCode::variant_refused, operation, caller,
                  fmt::format("{} cannot run {}: {}", tessera::to_string(wanted), problem.describe(),
                              to_string(*refusal, device)),
                  "Variant::automatic, which takes a variant that can");
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
        return size_of(input);  // what TMA cannot address is loaded by threads
    }
    // The same for every tile of a variant, so any problem and device will do.
    GemmProblem problem;
    problem.input = input;
    return simt_kernel_of(variant, problem, DeviceProperties{}).required_alignment;
}

std::string explain_choice(const GemmProblem& given, const DeviceProperties& device, Variant wanted,
                           std::optional<KernelChoice> made)
{
    const GemmProblem whole = resolved(given);
    const BatchLevels levels = levels_of(whole);
    const GemmProblem problem = one_launch(whole, levels);
    std::optional<TunedChoice> tuned;
    if (wanted == Variant::automatic) {
        tuned = find_valid_tuned(problem, device);
        if (tuned && made && !(*made == tuned->choice)) {
            tuned.reset();  // measured after the plan was made
        }
    }
    if (tuned && !made) {
        made = tuned->choice;
    }
    std::string text = fmt::format("{}\n  on {} (compute capability {}.{}, {} SMs)\n", whole.describe(), device.name,
                                   device.compute_capability_major, device.compute_capability_minor, device.sm_count);
    if (levels.launches > 1) {
        text += fmt::format(
            "  as {} launches of {} matrices each: the strides of the two levels of batches do not fold "
            "into one\n",
            levels.launches, levels.per_launch);
    }
    if (!made && wanted == Variant::automatic && !find_refusal(Variant::blackwell_clc, problem, device)) {
        made = KernelChoice{.variant = choose_blackwell(problem, device)};
    }
    const auto chosen = std::find_if(variants.begin(), variants.end(), [&](const VariantEntry& entry) {
        return (made ? made->variant == entry.variant : wanted == Variant::automatic || wanted == entry.variant) &&
               !find_refusal(entry.variant, problem, device);
    });
    if (chosen == variants.end()) {
        text += fmt::format("  runs: nothing; {} cannot run it\n", tessera::to_string(wanted));
    } else if (problem.m == 0 || problem.n == 0 || problem.batches == 0) {
        text += "  runs: nothing, because D is empty\n";
    } else {
        if (chosen->variant == Variant::hopper) {
            text += fmt::format("  runs: {} as {}\n", chosen->name,
                                describe_hopper(problem, made ? *made : choose_hopper(problem, device)));
        } else if (is_blackwell(chosen->variant)) {
            text +=
                fmt::format("  runs: {} with {}\n", chosen->name, describe_blackwell(chosen->variant, problem, device));
        } else {
            const kernels::SimtKernel kernel = simt_kernel_of(chosen->variant, problem, device);
            text += fmt::format("  runs: {} with a {}x{} tile per CTA of {} threads\n", chosen->name, kernel.block_m,
                                kernel.block_n, kernel.threads);
        }
        text += tuned ? "  why: " + describe_tuned(*tuned) + "\n"
                : wanted == Variant::automatic && is_blackwell(chosen->variant)
                    ? "  why: the fewest cycles in the model of docs/blackwell-ladder.md\n"
                : wanted == Variant::automatic ? fmt::format("  why: {}\n", chosen->strength)
                                               : "  why: it was asked for\n";
    }
    // Neighbours that are passed over for the same reason share a line.
    std::string names;
    std::string reason;
    const auto end_line = [&] {
        if (!names.empty()) {
            text += fmt::format("  passed over: {}: {}\n", names, reason);
        }
    };
    for (const VariantEntry& entry : variants) {
        if (chosen != variants.end() && entry.variant == chosen->variant) {
            continue;
        }
        const auto refusal = find_refusal(entry.variant, problem, device);
        const bool gives_up_tensor_cores =
            is_simt(entry.variant) && chosen != variants.end() && !is_simt(chosen->variant);
        std::string own;
        if (refusal) {
            own = "not eligible: " + to_string(*refusal, device);
        } else if (wanted != Variant::automatic) {
            own = "eligible, but not asked for";
        } else {
            own = fmt::format("eligible, but {}", gives_up_tensor_cores ? "without tensor cores" : entry.strength);
        }
        if (!names.empty() && own == reason) {
            names += fmt::format(", {}", entry.name);
            continue;
        }
        end_line();
        names = entry.name;
        reason = std::move(own);
    }
    end_line();
    return text;
}

}  // namespace detail
}  // namespace tessera
