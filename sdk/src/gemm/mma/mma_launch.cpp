#include "gemm/mma/mma_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "gemm/gemm_operands.hpp"
#include "gemm/tma_matrix.hpp"
#include "gemm/workspace.hpp"
#include "kernels/mma/mma_arguments.hpp"

namespace tessera::detail {
namespace {

using kernels::MmaConfig;
using kernels::MmaKernel;

constexpr std::int64_t max_ctas = 0x7FFFFFFF;
// Compute capabilities, of code.
constexpr int first_with_asynchronous_copies = 80;
constexpr int first_with_tma = 90;
// Of products, and tiles for them, that keep sums in f32 where these may be in f16: they wait for memory.
constexpr int most_rows_of_f32_sums = 32;
constexpr std::int64_t fewest_steps_of_a_part = 4;  // fewer do not pay for summing up
// The cost model, in cycles of an SM: before the first product of a CTA, and how fast sums go to the workspace and come back.
constexpr double cycles_to_begin = 5400;
constexpr double exchanged_bytes_per_cycle = 21;

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return value / by + (value % by != 0 ? 1 : 0); }

/// The problem as the kernel sees it.
struct Shape {
    InputTypes input;
    std::int64_t m;
    std::int64_t n;
    bool a_k_major;
    bool b_k_major;
};

Shape shape_of(const GemmProblem& problem, bool swapped)
{
    Shape shape{.input = problem.input,
                .m = problem.m,
                .n = problem.n,
                .a_k_major = problem.a.row_major,
                .b_k_major = !problem.b.row_major};
    if (swapped != is_transposed(problem)) {
        std::swap(shape.input.a, shape.input.b);
        std::swap(shape.m, shape.n);
        std::swap(shape.a_k_major, shape.b_k_major);
    }
    return shape;
}

std::int64_t tiles_of(const GemmProblem& problem, const MmaConfig& config, const Shape& shape)
{
    std::int64_t tiles = 0;
    if (__builtin_mul_overflow(divide_up(shape.m, config.tile_m), divide_up(shape.n, config.tile_n), &tiles) ||
        __builtin_mul_overflow(tiles, problem.batches, &tiles)) {
        return max_ctas + 1;
    }
    return tiles;
}

/// Returns the steps along K of a tile.
std::int64_t steps_of(std::int64_t k, InputTypes input)
{
    return divide_up(k, kernels::mma_stage_k_bytes / static_cast<std::int64_t>(size_of(input)));
}

std::int64_t steps_of(const GemmProblem& problem) { return steps_of(problem.k, problem.input); }

/// Returns the compute capability that the code was compiled for which a driver takes for a device of `capability`: machine
/// code of the same major version, else PTX. 0 if there is none.
int code_capability(InputTypes input, bool f16_sums, int capability)
{
    int machine_code = 0;
    int ptx = 0;
    for (const kernels::MmaCode& code : kernels::mma_code(input, f16_sums)) {
        if (code.capability > capability) {
            continue;
        }
        if (code.machine_code && code.capability / 10 == capability / 10) {
            machine_code = std::max(machine_code, code.capability);
        }
        if (code.ptx) {
            ptx = std::max(ptx, code.capability);
        }
    }
    return machine_code != 0 ? machine_code : ptx;
}

/// Returns the stages of a launch.
/// @param code  the compute capability that the kernel was compiled for
int stages_of(const MmaConfig& config, const DeviceProperties& device, int code)
{
    if (code < first_with_asynchronous_copies) {
        return kernels::mma_stages_of_75;
    }
    if (code < first_with_tma || config.any_alignment) {
        return kernels::mma_copied_stages(config,
                                          device.shared_memory_per_block_bytes >= kernels::mma_larger_shared_bytes &&
                                              !kernels::mma_has_smaller_shared(code));
    }
    return kernels::mma_stages(config, device.shared_memory_per_block_bytes, kernels::mma_most_stages);
}

/// Returns true if every line of A and B begins at a multiple of 16 bytes, and TMA can load them.
bool is_aligned(const GemmProblem& problem)
{
    return std::max({problem.m, problem.n, problem.k}) <= tma_extent_limit &&
           tma_can_load(problem.a, size_of(problem.input.a), problem.a.row_major ? problem.m : problem.k,
                        problem.batches) &&
           tma_can_load(problem.b, size_of(problem.input.b), problem.b.row_major ? problem.k : problem.n,
                        problem.batches);
}

/// Returns true if the way in which a stage is loaded keeps gates and ups apart that B has side by side.
/// @param code  the compute capability that the kernel was compiled for
bool can_take_pairs(const GemmProblem& problem, const MmaConfig& config, const Shape& shape, int code)
{
    if (problem.gating != Gating::side_by_side || shape.b_k_major || config.any_alignment) {
        return true;
    }
    const auto element_bytes = static_cast<std::int64_t>(size_of(shape.input.b));
    const bool divides_lines =
        code >= first_with_tma && config.tile_n / 2 * element_bytes % kernels::mma_stage_k_bytes != 0;
    return !divides_lines && problem.n / 2 * element_bytes % tma_alignment == 0;  // the ups' chunks are aligned, too
}

/// Returns the kernel of a configuration, or null.
const void* function_of(std::size_t config, const Shape& shape)
{
    return kernels::mma_kernels(shape.input)[config].functions[shape.a_k_major ? 1 : 0][shape.b_k_major ? 1 : 0];
}

/// Returns true if each row consists of vectors of elements that 16 bytes at a time, or all of them, can be accessed at once.
bool has_vectors(std::int64_t vector, const void* data, ElementType type, std::int64_t columns, std::int64_t row_stride,
                 std::int64_t column_stride, std::int64_t batch_stride)
{
    constexpr std::size_t widest = 16;
    const std::size_t bytes = std::min(widest, static_cast<std::size_t>(vector) * size_of(type));
    return column_stride == 1 && columns % vector == 0 && row_stride % vector == 0 && batch_stride % vector == 0 &&
           reinterpret_cast<std::uintptr_t>(data) % bytes == 0;
}

/// MmaArguments::in_vectors.
bool comes_in_vectors(const kernels::GemmArguments& gemm)
{
    if (gemm.has_scale_vectors() || gemm.pre_activation.data != nullptr || is_float8(gemm.d_type) ||
        gemm.gating != Gating::none || gemm.bias_axis == BiasAxis::per_row) {
        return false;
    }
    const std::int64_t stored = gemm.d_type == ElementType::f32 ? 4 : 8;  // 16 bytes
    return has_vectors(stored, gemm.d, gemm.d_type, gemm.n, gemm.d_row_stride, gemm.d_column_stride,
                       gemm.d_batch_stride) &&
           (gemm.bias_axis == BiasAxis::none || has_vectors(stored, gemm.bias, gemm.bias_type, gemm.n, 0, 1, 0)) &&
           (gemm.beta == 0 || has_vectors(stored, gemm.c.data, gemm.c_type, gemm.n, gemm.c.row_stride,
                                          gemm.c.column_stride, gemm.c.batch_stride));
}

/// Encodes the map of an operand's tiles, of `extent` rows of A or columns of B each.
/// @param halves  true if one load has half of them
CallStatus encode_tiles(const DeviceProperties& device, const TmaMatrix& matrix, int extent, bool k_major, bool halves,
                        AnyTensorMap<3>& map)
{
    const auto element_bytes = static_cast<std::uint32_t>(matrix.element_bytes);
    const std::uint32_t block_k = kernels::mma_stage_k_bytes / element_bytes;
    const auto x = static_cast<std::uint32_t>(extent);
    const std::uint32_t line_bytes =
        k_major ? kernels::mma_stage_k_bytes : std::min<std::uint32_t>(x * element_bytes, kernels::mma_stage_k_bytes);
    return encode_map(device, matrix,
                      {.run = line_bytes / element_bytes,
                       .lines = k_major ? (halves ? x / 2 : x) : block_k,
                       .swizzle = line_bytes == 128  ? Swizzle::b128
                                  : line_bytes == 64 ? Swizzle::b64
                                                     : Swizzle::b32},
                      map);
}

std::uint8_t band_of(const MmaConfig& config, int sm_count)
{
    // The tiles of a wave are roughly square in elements.
    return static_cast<std::uint8_t>(
        std::clamp(std::round(std::sqrt(static_cast<double>(sm_count) * config.tile_n / config.tile_m)), 1.0, 255.0));
}

double outputs_of(const MmaConfig& config) { return static_cast<double>(config.tile_m) * config.tile_n; }

/// Returns the cycles of a step of a CTA, of `together` that share an SM.
double step_cycles_of(const MmaConfig& config, double together)
{
    return std::max<double>(together * config.step_cycles, config.lone_step_cycles);
}

/// CTAs that the device has room for.
std::int64_t room_of(const MmaConfig& config, const DeviceProperties& device)
{
    return std::int64_t{std::max(device.sm_count, 1)} *
           kernels::mma_ctas_per_sm(config, device.shared_memory_per_block_bytes);
}

std::int64_t divided_tiles_of(const KernelChoice& choice, std::int64_t tiles)
{
    return choice.cluster_k == 1 ? 0 : choice.stream_k ? choice.clusters : tiles;
}

/// How the steps of a divided tile are shared among its parts.
struct PartSteps {
    std::int64_t all;
    std::int64_t of_last;     // the others share the rest evenly
    std::int64_t last_turns;  // last parts that come one after the other where one CTA has room
};

/// Returns the steps of a divided tile's parts. With stream-K all parts but the last of each tile run at once. The last ones
/// share the room that is left, and are so short that it is busy for as long as the rest. Then each SM has the same share of K.
PartSteps part_steps_of(const MmaConfig& config, const DeviceProperties& device, const KernelChoice& choice,
                        std::int64_t steps)
{
    PartSteps parts{.all = steps, .of_last = steps / choice.cluster_k, .last_turns = 1};
    const std::int64_t others = choice.cluster_k - 1;
    const std::int64_t left = room_of(config, device) - others * choice.clusters;
    if (choice.stream_k && left > 0) {
        parts.last_turns = divide_up(choice.clusters, left);
        const auto turns = static_cast<double>(parts.last_turns);
        const double together = kernels::mma_ctas_per_sm(config, device.shared_memory_per_block_bytes);
        const double in_between =  // steps in the time of a CTA that writes its sums and of the next one that begins
            (cycles_to_begin + outputs_of(config) * sizeof(float) / exchanged_bytes_per_cycle) /
            step_cycles_of(config, together);
        const double even = (static_cast<double>(steps) - static_cast<double>(others) * (turns - 1) * in_between) /
                            (static_cast<double>(others) * turns + 1);
        parts.of_last = std::min(std::max<std::int64_t>(std::llround(even), 1), parts.of_last);
    }
    return parts;
}

/// Returns the SM cycles that a choice needs, by a model whose constants were fitted to products on an H200
/// (docs/notes/mma-kernel.md). Other GPUs have the same order of configurations, or nobody has measured it.
double cycles_of(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    const MmaConfig& config = *kernels::mma_kernels(problem.input)[choice.config].config;
    const double sms = std::max(device.sm_count, 1);
    const double together = kernels::mma_ctas_per_sm(config, device.shared_memory_per_block_bytes);
    const std::int64_t tiles = tiles_of(problem, config, shape_of(problem, choice.swapped));
    const std::int64_t steps = steps_of(problem);
    const double outputs = outputs_of(config);
    constexpr double per_output = 0.29;
    constexpr double per_output_down_columns = 1.6;  // by the general epilogue
    const double of_a_turn = cycles_to_begin + outputs * (choice.swapped ? per_output_down_columns : per_output);
    const auto cycles_of_ctas = [&](std::int64_t ctas, std::int64_t steps_of_cta) {
        const double on_an_sm = std::ceil(static_cast<double>(ctas) / sms);  // the busiest
        const double turns = std::ceil(on_an_sm / together);
        return static_cast<double>(steps_of_cta) *
                   std::max(on_an_sm * config.step_cycles, turns * config.lone_step_cycles) +
               turns * of_a_turn;
    };

    const double to_write = outputs * sizeof(float) / exchanged_bytes_per_cycle;
    double cycles = 0;
    if (!choice.stream_k) {
        cycles = cycles_of_ctas(tiles * choice.cluster_k, divide_up(steps, choice.cluster_k));
    } else {
        const std::int64_t others = choice.cluster_k - 1;
        const PartSteps parts = part_steps_of(config, device, choice, steps);
        const std::int64_t at_once =
            std::min(others * choice.clusters + divide_up(choice.clusters, parts.last_turns), room_of(config, device));
        const auto turns = static_cast<double>(parts.last_turns);
        const double of_last = turns * static_cast<double>(parts.of_last) * step_cycles_of(config, together) +
                               (turns - 1) * (cycles_to_begin + to_write) + of_a_turn;
        const double of_others = cycles_of_ctas(at_once, divide_up(parts.all - parts.of_last, others));
        cycles = cycles_of_ctas(tiles - choice.clusters, steps) +
                 (parts.last_turns > 1 ? std::max(of_last, of_others) : of_others);
    }
    if (choice.cluster_k > 1) {
        constexpr double exchange = 1900;
        cycles += exchange + (choice.cluster_k + 1) * to_write;
    }
    return cycles;
}

}  // namespace

bool has_mma_code(InputTypes input, const DeviceProperties& device) noexcept
{
    return kernels::has_mma_instructions(input, code_capability(input, false, device.compute_capability()));
}

std::optional<Refusal> find_mma_refusal(const GemmProblem& problem, const DeviceProperties& device)
{
    using Reason = Refusal::Reason;
    const int capability = device.compute_capability();
    constexpr int first_with_tf32 = 80;
    if (problem.input == InputTypes(ElementType::f32) && capability >= first_with_tf32) {
        return Refusal{Reason::needs_tf32};
    }
    if (!kernels::has_mma_instructions(problem.input, capability)) {
        return Refusal{.reason = Reason::architecture,
                       .needs = is_float8(problem.input) ? "multiplies 8-bit elements from 8.9 on"
                                                         : "multiplies f16 there, bf16 and tf32 from 8.0 on"};
    }
    if (!has_mma_code(problem.input, device)) {
        return Refusal{Reason::not_built, ' ', 0, capability};
    }
    const auto table = kernels::mma_kernels(problem.input);
    const Shape shape = shape_of(problem, false);
    for (std::size_t i = 0; i < table.size(); ++i) {
        if (table[i].config->any_alignment && function_of(i, shape) != nullptr &&
            tiles_of(problem, *table[i].config, shape) <= max_ctas) {
            return std::nullopt;
        }
    }
    return Refusal{Reason::grid_size, ' ', tiles_of(problem, *table[0].config, shape), max_ctas};
}

bool is_mma_choice_valid(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    const auto table = kernels::mma_kernels(problem.input);
    if (choice.config >= table.size() || choice.band == 0 || choice.cluster_k == 0 ||
        (choice.swapped && problem.gating != Gating::none)) {
        return false;
    }
    const MmaConfig& config = *table[choice.config].config;
    const Shape shape = shape_of(problem, choice.swapped);
    const int code = code_capability(problem.input, config.f16_sums, device.compute_capability());
    const bool is_of_75 = code < first_with_asynchronous_copies;
    const bool has_code = code != 0 && (is_of_75 ? config.for_75 : config.for_80);
    return has_code && (!config.f16_sums || allows_f16_sums(problem)) &&
           (config.any_alignment || is_aligned(problem)) && function_of(choice.config, shape) != nullptr &&
           can_take_pairs(problem, config, shape, code) &&
           kernels::mma_ring_bytes(config, stages_of(config, device, code)) <= device.shared_memory_per_block_bytes &&
           tiles_of(problem, config, shape) <= max_ctas / choice.cluster_k &&
           (choice.cluster_k == 1 || choice.cluster_k <= steps_of(problem)) &&
           (!choice.stream_k ||
            (choice.cluster_k > 1 && choice.clusters > 0 && choice.clusters <= tiles_of(problem, config, shape)));
}

namespace {

/// Returns true if sums may be in f16, and a configuration for that can run the problem.
bool can_sum_in_f16(const GemmProblem& problem, const DeviceProperties& device)
{
    if (!allows_f16_sums(problem)) {
        return false;
    }
    const auto table = kernels::mma_kernels(problem.input);
    for (std::size_t index = 0; index < table.size(); ++index) {
        const KernelChoice choice{.variant = Variant::mma_sync, .config = static_cast<std::uint8_t>(index), .band = 1};
        if (table[index].config->f16_sums && is_mma_choice_valid(problem, device, choice)) {
            return true;
        }
    }
    return false;
}

/// Calls `visit` with stream-K in the configuration of `choice`: the last tiles, which do not fill a wave, are divided, so that
/// all parts but the last ones run at once.
void visit_stream_k(const GemmProblem& problem, const DeviceProperties& device, KernelChoice choice,
                    const std::function<void(const KernelChoice&)>& visit)
{
    constexpr std::int64_t most_parts = 8;  // more are summed up for too long
    const MmaConfig& config = *kernels::mma_kernels(problem.input)[choice.config].config;
    const std::int64_t tiles = tiles_of(problem, config, shape_of(problem, choice.swapped));
    const std::int64_t room = room_of(config, device);
    const std::int64_t divided = tiles % room;
    if (divided == 0 || divided > std::numeric_limits<std::uint16_t>::max()) {
        return;
    }
    choice.stream_k = true;
    choice.clusters = static_cast<std::uint16_t>(divided);
    for (std::int64_t parts = 2;
         parts <= most_parts && (parts - 1) * divided < room && parts <= steps_of(problem) / fewest_steps_of_a_part;
         ++parts) {
        choice.cluster_k = static_cast<std::uint8_t>(parts);
        const bool is_split_k = divided == tiles && parts * divided <= room;
        if (!is_split_k && is_mma_choice_valid(problem, device, choice)) {
            visit(choice);
        }
    }
}

}  // namespace

void for_each_mma_candidate(const GemmProblem& problem, const DeviceProperties& device,
                            const std::function<void(const KernelChoice&)>& visit)
{
    constexpr std::int64_t max_swapped_n = 512;  // beyond, few tiles are empty in part
    const auto table = kernels::mma_kernels(problem.input);
    const bool sums_in_f16 = can_sum_in_f16(problem, device);
    for (std::size_t index = 0; index < table.size(); ++index) {
        const MmaConfig& config = *table[index].config;
        if (sums_in_f16 && !config.f16_sums &&
            (config.tile_m > most_rows_of_f32_sums || std::min(problem.m, problem.n) > most_rows_of_f32_sums)) {
            continue;
        }
        for (const bool swapped : {false, true}) {
            KernelChoice choice{.variant = Variant::mma_sync,
                                .config = static_cast<std::uint8_t>(index),
                                .swapped = swapped,
                                .band = band_of(config, device.sm_count)};
            const Shape shape = shape_of(problem, swapped);
            if ((swapped && shape.n > max_swapped_n && shape.m > max_swapped_n) ||
                !is_mma_choice_valid(problem, device, choice)) {
                continue;
            }
            visit(choice);
            // Splitting K pays off where whole tiles leave SMs idle.
            const std::int64_t tiles = tiles_of(problem, config, shape);
            const std::int64_t room = room_of(config, device);
            constexpr std::int64_t most_turns = 2;  // beyond, parts do not divide the work more evenly
            std::int64_t before = 1;
            for (const std::int64_t parts : {2, 3, 4, 6, 8, 12, 16, 24, 32}) {
                if (tiles == 0 || tiles * before >= most_turns * room ||
                    parts > steps_of(problem) / fewest_steps_of_a_part) {
                    break;
                }
                choice.cluster_k = static_cast<std::uint8_t>(parts);
                before = parts;
                if (is_mma_choice_valid(problem, device, choice)) {
                    visit(choice);
                }
            }
            visit_stream_k(problem, device, choice, visit);
        }
    }
}

KernelChoice choose_mma(const GemmProblem& problem, const DeviceProperties& device, std::size_t workspace_limit)
{
    // What stream-K has to be expected to gain. Without it, it would often be chosen where it loses (docs/notes/mma-kernel.md).
    constexpr double least_gain = 1.03;
    struct Best {
        KernelChoice choice{.variant = Variant::mma_sync};
        double cycles = std::numeric_limits<double>::infinity();
    };
    Best best;
    Best of_stream_k;
    for_each_mma_candidate(problem, device, [&](const KernelChoice& choice) {
        if (workspace_limit != unlimited_workspace && choice.cluster_k > 1 &&
            workspace_bytes(mma_workspace(problem, choice)) > workspace_limit) {
            return;
        }
        Best& so_far = choice.stream_k ? of_stream_k : best;
        const double cycles = cycles_of(problem, device, choice);
        if (cycles < so_far.cycles) {
            so_far = {.choice = choice, .cycles = cycles};
        }
    });
    return of_stream_k.cycles * least_gain < best.cycles ? of_stream_k.choice : best.choice;
}

void add_mma_candidates(const GemmProblem& problem, const DeviceProperties& device, std::vector<KernelChoice>& to)
{
    constexpr double promising = 1.5;  // times the least
    std::vector<std::pair<double, KernelChoice>> all;
    for_each_mma_candidate(problem, device, [&](const KernelChoice& choice) {
        all.emplace_back(cycles_of(problem, device, choice), choice);
    });
    const auto least = std::ranges::min_element(all, {}, [](const auto& one) { return one.first; });
    for (const auto& [cycles, choice] : all) {
        if (cycles <= promising * least->first) {
            to.push_back(choice);
        }
    }
}

std::string describe_mma(const GemmProblem& problem, const KernelChoice& choice)
{
    const MmaKernel& kernel = kernels::mma_kernels(problem.input)[choice.config];
    const std::int64_t tiles = tiles_of(problem, *kernel.config, shape_of(problem, choice.swapped));
    return fmt::format("{}{}, {} tile{} in raster groups of {}{}{}", kernel.name,
                       choice.swapped ? " of the transposed product" : "", tiles, tiles == 1 ? "" : "s", choice.band,
                       choice.stream_k        ? fmt::format(", the last {} in {} parts along K each: stream-K",
                                                            choice.clusters, choice.cluster_k)
                       : choice.cluster_k > 1 ? fmt::format(", each split in {} along K", choice.cluster_k)
                                              : std::string(),
                       kernel.config->f16_sums    ? ", sums in f16 of 64 products"
                       : allows_f16_sums(problem) ? ", sums in f32"
                                                  : "");
}

WorkspaceNeed mma_workspace(const GemmProblem& problem, const KernelChoice& choice)
{
    WorkspaceNeed need;
    if (choice.cluster_k > 1) {
        const MmaConfig& config = *kernels::mma_kernels(problem.input)[choice.config].config;
        const auto tiles = static_cast<std::size_t>(
            divided_tiles_of(choice, tiles_of(problem, config, shape_of(problem, choice.swapped))));
        need.partial_bytes = tiles * choice.cluster_k * static_cast<std::size_t>(config.tile_m) *
                             static_cast<std::size_t>(config.tile_n) * sizeof(float);
        need.counters = tiles;
    }
    return need;
}

CallStatus encode_mma(EncodedLaunch& launch, const GemmProblem& problem, const DeviceProperties& device,
                      const KernelChoice& choice, const kernels::GemmArguments& given, const WorkspaceMemory& workspace)
{
    const MmaKernel& kernel = kernels::mma_kernels(problem.input)[choice.config];
    const MmaConfig& config = *kernel.config;
    const Shape shape = shape_of(problem, choice.swapped);
    auto& arguments = launch.emplace_arguments<kernels::MmaArguments>();
    arguments.gemm = choice.swapped ? transposed(given) : given;
    kernels::GemmArguments& gemm = arguments.gemm;
    gemm.raster = raster_of(gemm, config.tile_m, config.tile_n, choice.band);
    arguments.partials = workspace.partials;
    arguments.arrivals = workspace.arrivals;
    const std::uint32_t tiles = gemm.raster.tiles() * static_cast<std::uint32_t>(problem.batches);
    const auto divided = static_cast<std::uint32_t>(divided_tiles_of(choice, tiles));
    arguments.whole_tiles = tiles - divided;
    arguments.parts = choice.cluster_k;
    arguments.parts_in_turn = choice.stream_k;
    arguments.in_turn = Divisor(choice.stream_k ? std::max(divided, 1U) : choice.cluster_k);
    // Not of the problem: without alpha there is nothing to multiply. 2^32 steps would be 512 GiB of a row of A.
    const PartSteps parts = part_steps_of(config, device, choice, steps_of(gemm.k, problem.input));
    arguments.tile_steps = static_cast<std::uint32_t>(parts.all);
    if (choice.cluster_k > 1) {
        const auto others = static_cast<std::uint32_t>(parts.all - parts.of_last);
        arguments.part_steps = others / (choice.cluster_k - 1U);
        arguments.longer_parts = others % (choice.cluster_k - 1U);
    }
    launch.ctas = arguments.whole_tiles + divided * choice.cluster_k;
    const int code = code_capability(problem.input, config.f16_sums, device.compute_capability());
    const int stages = stages_of(config, device, code);
    arguments.stages = static_cast<std::uint32_t>(stages);
    arguments.two_level = problem.fp8_accumulation == Fp8Accumulation::two_level;
    arguments.a_k_major = shape.a_k_major;
    arguments.b_k_major = shape.b_k_major;
    arguments.staged_fragments = static_cast<std::uint32_t>(config.warp_m()) / 16;
    while (static_cast<std::size_t>(kernels::mma_staging_bytes(config)) * arguments.staged_fragments >
           kernels::mma_ring_bytes(config, stages)) {
        arguments.staged_fragments /= 2;
    }
    arguments.in_vectors = comes_in_vectors(gemm);
    launch.function = function_of(choice.config, shape);
    launch.threads = static_cast<std::uint32_t>(config.threads());
    launch.shared_bytes = static_cast<std::uint32_t>(kernels::mma_ring_bytes(config, stages));
    launch.cluster = 1;
    // Code for older GPUs does not wait for the previous kernel.
    launch.programmatic = code >= first_with_tma;
    launch.copy_count = 0;
    if (code < first_with_tma || config.any_alignment || gemm.k == 0) {
        return {};
    }
    CallStatus status = encode_tiles(device, tma_a(gemm, shape.a_k_major, problem.batches), config.tile_m,
                                     shape.a_k_major, false, arguments.a_map);
    if (!status.status) {
        status = encode_tiles(device, tma_b(gemm, shape.b_k_major, problem.batches), config.tile_n, shape.b_k_major,
                              true, arguments.b_map);
    }
    return status;
}

}  // namespace tessera::detail
