#include "gemm/hopper/hopper_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>

#include "gemm/gemm_operands.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/hopper/hopper_measured.hpp"
#include "gemm/hopper/hopper_repack.hpp"
#include "gemm/workspace.hpp"

namespace tessera::detail {
namespace {

using kernels::HopperKernel;

// Cycles are SM cycles, at about 1.75 GHz; docs/notes/hopper-chooser.md says where each constant comes from.
// Measured, or given by the architecture:
constexpr double consumer_stage_cycles = 350;          // per stage, however small the tile
constexpr double shared_memory_bytes_per_cycle = 128;  // per SM
// Fitted to the times of all candidates for 22 problems, some again to 170 others, on an H200 with bf16:
constexpr double ingest_bytes_per_cycle = 70;    // that an SM can take in
constexpr double memory_bytes_per_cycle = 2580;  // device memory, all SMs together
constexpr double epilogue_row_cycles = 25;       // per row that a consumer writes, and per output:
constexpr double epilogue_output_cycles = 0.04;
constexpr double turns_cycles = 300;                // until consumers that take turns have added up their sums
constexpr double layers_cycles = 4000;              // cluster split-K: the CTAs exchange and sum up their parts
constexpr double start_cycles = 3300;               // until the first stage has landed, and the end
constexpr double pair_cycles = 400;                 // until a tile's second consumer has ended, too
constexpr double latency_cycles = 2510;             // latency of the ring, from a free stage to the next
constexpr double multicast_bytes_per_cycle = 40;    // per CTA, if the CTAs of a cluster load for each other
constexpr double straddled_bytes_per_cycle = 34;    // per CTA, of rows that begin inside a sector
constexpr double straddled_line_cycles = 6;         // per SM, if they are along M or N: for each of up to 128 bytes
constexpr double written_share = 0.5;               // of a stage's writes to shared memory, that wait for reads
constexpr double repeated_bytes_per_cycle = 29000;  // all SMs together, of data that several clusters read
constexpr double small_operand_share = 0.11;        // of that, for the smaller operand: many clusters read it at once
constexpr double l2_bytes_per_cycle = 3500;         // all SMs together, of requests for different parts of K
constexpr double piece_bytes = 180;      // contiguous bytes that device memory reads in the time between two pieces
constexpr double cluster_cycles = 285;   // to start and end together, for each doubling of the cluster
constexpr double sharing_cycles = 5650;  // fences and a counter, for clusters that share a tile
constexpr double shared_bytes_per_cycle = 6;     // per consumer, of parts of shared tiles written and read back
constexpr double added_outputs_per_cycle = 1.2;  // per SM, when the CTAs of a cluster sum up their parts
constexpr double general_output_cycles = 1;      // per output that a consumer writes without TMA, and per row:
constexpr double general_row_cycles = 20;
constexpr double byte_heat = 0.0028;     // power: tensor-core cycles that use as much energy as one byte taken in
constexpr double sustained_share = 0.4;  // of the tensor core's rate that the power limit allows at the full clock
constexpr double side_by_side_exponent = 5.4;  // see side_by_side
// Set with the presets `models` and `random` on one H200: docs/notes/hopper-chooser.md.
constexpr double sm_memory_bytes_per_cycle = 21.5;  // of device memory, one SM; from L2 it gets more
// Of the start, saved by a kernel that starts beside the previous one: on SMs of its own, or on the same ones.
constexpr double overlap_cycles = 2300;
constexpr double shared_overlap_cycles = 1700;
// Of products of up to `short_stages`, none of twice as many: set with 66 products of K up to 600 on one H200. Their clusters
// all wait for their first stages at once, and those of several CTAs ask for fewer lines.
constexpr double short_stages = 8;
constexpr double same_line_cycles = 22;      // until L2 has served one of the clusters that read the same lines
constexpr double short_pair_cycles = 600;    // more, until a tile's second consumer has ended, too
constexpr double short_output_cycles = 0.1;  // more, per output of a consumer's tile
// Per column of a consumer's row, besides a plain epilogue; of gated pairs, activations are per pair. Fitted to fused
// products on an H200: docs/notes/hopper-chooser.md.
constexpr double fused_output_cycles = 0.04;
constexpr double activation_output_cycles = 0.17;         // of any but ReLU
constexpr double other_output_cycles = 1;                 // instead, of an epilogue without code of its own
constexpr double other_activation_output_cycles = 0.42;   // of any but ReLU, in it
constexpr double crowded_output_cycles = 1.15;            // more, in it, beside more than 128 accumulators
constexpr double general_activation_output_cycles = 1.4;  // of any of these, without TMA
constexpr double ingest_bytes_out_of_step = 60;           // instead of ingest_bytes_per_cycle, after a tile with a C
// Fitted to the times of seven configurations for four products of f8e4m3 with sums in two levels, on one H200.
constexpr double promotion_cycles = 300;  // until the tensor core has ended with a part, and to add its sums
// Of small products, in which each stage waits for its loads: 26 problems on an H200. A large one (4096x4096x4096 of bf16 with
// leading dimensions of 4097, on Copying128x192) reaches 5.5, but is repacked anyway.
constexpr double copied_bytes_per_cycle = 2.25;
// Estimated: one more kernel; the device is not full before and after it.
constexpr double repack_cycles = 5000;

constexpr double divide_up(double value, double by)
{
    return static_cast<double>(static_cast<std::int64_t>((value + by - 1) / by));
}

/// Returns true if rows of the operand begin inside a cache sector of 32 bytes.
bool straddles_sectors(const MatrixLayout& layout, ElementType type)
{
    constexpr std::size_t sector_bytes = 32;
    const auto row_bytes = static_cast<std::size_t>(layout.leading_dimension) * size_of(type);
    return row_bytes % sector_bytes != 0 || layout.address_alignment % sector_bytes != 0;
}

/// Returns true if rows of the operand that the kernel has as A (or as B) begin inside a sector. An operand that threads
/// copy, or that is repacked first, counts as one without.
bool loads_straddle(const GemmProblem& problem, const HopperShape& shape, const KernelChoice& choice, bool of_a)
{
    const bool given_a = of_a == (choice.swapped == is_transposed(problem));
    return !(of_a ? shape.a_by_threads : shape.b_by_threads) &&
           (given_a ? straddles_sectors(problem.a, problem.input.a) : straddles_sectors(problem.b, problem.input.b));
}

/// Returns the time of two activities that overlap, but do not hide each other completely.
double side_by_side(double one, double other)
{
    return std::pow(std::pow(one, side_by_side_exponent) + std::pow(other, side_by_side_exponent),
                    1 / side_by_side_exponent);
}

/// Cycles from one stage to the next, for all CTAs of an SM that run `beside` each other. `in_step`: CTAs that read the
/// same rows request them at the same time.
double stage_cycles(const GemmProblem& problem, const HopperShape& shape, const HopperKernel& kernel,
                    const KernelChoice& choice, double beside, bool in_step)
{
    const double rows = kernel.tile_m;
    const double columns = kernel.tile_n;
    const double loaded_rows = std::min(rows, static_cast<double>(shape.m));
    const double loaded_columns = std::min(columns, static_cast<double>(shape.n));
    // Four instructions of 32 bytes of K each for 64 rows: their math, or the time to read both operands from shared memory.
    const auto math_cycles = [](double width) { return 4 * width / 2; };
    const auto read_cycles = [](double width) { return (64 + width) * 128 / shared_memory_bytes_per_cycle; };
    const auto block_cycles = [&](double width) { return std::max(math_cycles(width), read_cycles(width)); };
    const double write_cycles = (loaded_rows + loaded_columns) * 128 / shared_memory_bytes_per_cycle;
    const double tensor =
        std::max(rows / 64 * math_cycles(columns), rows / 64 * read_cycles(columns) + written_share * write_cycles);
    double promoted = 0;  // until a CTA has multiplied a stage and added its sums
    if (is_float8(problem.input) && problem.fp8_accumulation == Fp8Accumulation::two_level) {
        // A consumer waits for each part of its tile. Meanwhile the other one multiplies, if they share the tile, or the
        // other CTA of the SM.
        const double part = block_cycles(kernel.two_level_columns);
        const double parts = rows / 64 * columns / kernel.two_level_columns;
        const bool together = kernel.consumers > 1 && !kernel.ping_pong;
        const bool contended = together || beside > 1;
        const double both = part + promotion_cycles + (contended ? part * part / (part + promotion_cycles) : 0);
        promoted = std::max(parts * part, parts * both / (together ? kernel.consumers : 1));
    }

    const double a_bytes = 128 * loaded_rows;
    const double b_bytes = 128 * loaded_columns;
    const auto asked_rate = [&](bool of_a) {
        const bool straddles = loads_straddle(problem, shape, choice, of_a);
        const bool shared = (of_a ? choice.cluster_n : choice.cluster_m) > 1;
        return straddles ? straddled_bytes_per_cycle : shared ? multicast_bytes_per_cycle : ingest_bytes_per_cycle;
    };
    const double loads = (a_bytes + b_bytes) / (in_step ? ingest_bytes_per_cycle : ingest_bytes_out_of_step);
    const double asked = a_bytes / choice.cluster_n / asked_rate(true) + b_bytes / choice.cluster_m / asked_rate(false);
    // TMA asks for such lines one by one, and writes those that others ask for, too.
    const auto straddled_lines = [&](bool of_a) {
        const bool k_major = of_a ? shape.a_k_major : shape.b_k_major;
        if (k_major || !loads_straddle(problem, shape, choice, of_a)) {
            return 0.0;
        }
        const double line = 128 / static_cast<double>(size_of(problem.input));
        const double lines = kernel.block_k * divide_up(of_a ? loaded_rows : loaded_columns, line);
        return lines * (1 + 1.0 / (of_a ? choice.cluster_n : choice.cluster_m)) / 2;
    };
    const double lines = straddled_lines(true) + straddled_lines(false);
    const double copied_rows = (shape.a_by_threads ? rows : 0) + (shape.b_by_threads ? columns : 0);
    const double copies = kernel.copies ? copied_rows * 128 / copied_bytes_per_cycle : 0;

    const double alone =
        std::max({consumer_stage_cycles / kernel.stages_in_turn, latency_cycles / kernel.stages, asked, promoted});
    return std::max(alone, std::max({tensor, loads, copies, lines * straddled_line_cycles}) * beside);
}

HopperEpilogue epilogue_of(const GemmProblem& problem)
{
    return {.d = problem.output,
            .c = problem.output,
            .has_c = problem.has_c,
            .bias = is_transposed(problem) ? transposed(problem.bias) : problem.bias,
            .activation = problem.activation,
            .gating = problem.gating,
            .has_scale_vectors = problem.row_scales || problem.column_scales,
            .has_pre_activation = problem.has_pre_activation};
}

/// Columns of D per column of A * B: of gated pairs, one is activated and their product stored.
double stored_share(const GemmProblem& problem) { return problem.gating == Gating::none ? 1 : 0.5; }

/// Cycles per row of a tile that a consumer needs to finish and store it. `shared`: clusters share the tile, and each stores a
/// slice of it.
double row_cycles(const GemmProblem& problem, const HopperShape& shape, const HopperKernel& kernel,
                  const KernelChoice& choice, bool shared)
{
    const std::size_t d_columns = static_cast<std::size_t>(kernel.tile_n) / (problem.gating == Gating::none ? 1 : 2);
    const bool by_tma = !choice.swapped && d_columns * size_of(problem.output) % 16 == 0;
    const bool activates = problem.activation != Activation::none && problem.activation != Activation::relu;
    const double activated = activates ? stored_share(problem) : 0;
    const double columns = kernel.tile_n;
    if (!by_tma) {
        const double written = std::min(columns, static_cast<double>(shape.n));  // the others are beyond D
        return epilogue_row_cycles + (shared ? 0 : general_row_cycles) +
               written * (general_output_cycles + activated * general_activation_output_cycles);
    }
    const kernels::HopperFinishing finishing = finishing_of(epilogue_of(problem), kernel, kernel.carries_c);
    if (finishing == kernels::HopperFinishing::plain) {
        return epilogue_row_cycles + columns * epilogue_output_cycles;
    }
    if (finishing != kernels::HopperFinishing::other) {
        return epilogue_row_cycles +
               columns * (epilogue_output_cycles + fused_output_cycles + activated * activation_output_cycles);
    }
    const int consumer_rows =
        kernel.ping_pong || kernel.stages_in_turn > 1 ? kernel.tile_m : kernel.tile_m / kernel.consumers;
    const bool is_crowded = consumer_rows * kernel.tile_n / 128 > 128;
    return epilogue_row_cycles + columns * (other_output_cycles + (is_crowded ? crowded_output_cycles : 0) +
                                            activated * other_activation_output_cycles);
}

/// Cycles that memory and L2 need to serve all CTAs. `sms`: SMs that would do all work if each did as much as the busiest
/// one. `in_step`: CTAs that read the same rows read them at the same time.
double memory_cycles(const GemmProblem& problem, const HopperShape& shape, const HopperKernel& kernel,
                     const KernelChoice& choice, double l2_bytes, double sms, bool in_step)
{
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const double rows = kernel.tile_m;
    const double columns = kernel.tile_n;
    // Number of clusters that read the same row of B, or of A.
    const double down = divide_up(m, rows * choice.cluster_m);
    const double across = divide_up(n, columns * choice.cluster_n);
    const auto batches = static_cast<double>(shape.batches);
    const double row_bytes = batches * static_cast<double>(shape.k) * static_cast<double>(size_of(problem.input));
    const int matrices = 1 + (problem.has_c ? 1 : 0) + (problem.has_pre_activation ? 1 : 0);
    const double d_bytes =
        batches * m * n * stored_share(problem) * static_cast<double>(size_of(problem.output)) * matrices;
    const double repeated_rows = std::max(m * (across - 1) * (m < n ? small_operand_share : 1),
                                          n * (down - 1) * (n < m ? small_operand_share : 1));
    // Out of step, L2 has lost a row before it is requested again, unless it holds both operands. Where rows run along the
    // tile's edge and begin inside a sector, neighbouring tiles request the same lines.
    const double matrix_row_bytes = row_bytes / batches;
    const bool keeps_all = in_step || (m + n) * matrix_row_bytes <= l2_bytes;
    const auto reads = [&](double extent, double times, bool of_a) {
        if (keeps_all || extent * matrix_row_bytes <= l2_bytes / 4) {
            return extent * row_bytes;
        }
        const bool along_k = of_a ? shape.a_k_major : shape.b_k_major;
        return extent * row_bytes * times * (!along_k && loads_straddle(problem, shape, choice, of_a) ? 2 : 1);
    };
    // An operand along M or N is read in pieces as long as the edge of what a cluster reads, unless it reads whole lines.
    const auto pauses = [&](double extent, double read, bool k_major) {
        return k_major || read >= extent
                   ? 0
                   : extent * row_bytes * piece_bytes / (read * static_cast<double>(size_of(problem.input)));
    };
    const double bytes = reads(m, across, true) + reads(n, down, false) + d_bytes +
                         pauses(m, rows * choice.cluster_m, shape.a_k_major) +
                         pauses(n, columns * choice.cluster_n, shape.b_k_major);
    const double rate = std::min(memory_bytes_per_cycle, sms * sm_memory_bytes_per_cycle);
    return bytes / rate + repeated_rows * row_bytes / repeated_bytes_per_cycle;
}

/// Returns the expected time in cycles. Only the order of the results matters.
double expected_cycles(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    const HopperKernel& kernel = kernels::hopper_kernels(size_of(problem.input))[choice.config];
    const HopperShape shape = hopper_shape(problem, choice.swapped);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const auto k = static_cast<double>(shape.k);
    const auto batches = static_cast<double>(shape.batches);
    const double rows = kernel.tile_m;
    const double columns = kernel.tile_n;
    const double down = divide_up(m, rows * choice.cluster_m);
    const double across = divide_up(n, columns * choice.cluster_n);
    const double tiles = down * across * batches;
    const double turns = std::max(divide_up(k, static_cast<double>(kernel.block_k) * kernel.stages_in_turn), 1.0);
    const double stages = turns * kernel.stages_in_turn;
    const double clusters = choice.clusters;
    const double layer_size = choice.cluster_m * choice.cluster_n;
    const double cluster_size = layer_size * choice.cluster_k;
    const double layers = choice.cluster_k;
    const bool shares_tiles = choice.stream_k && std::fmod(tiles, clusters) != 0;

    // The busiest SM: how many CTAs at a time, and how many tiles and stages each.
    const auto slots = static_cast<double>(hopper_cluster_slots(device, kernel, static_cast<int>(cluster_size)));
    const double waves = divide_up(clusters, slots);
    const double beside = std::min<double>(divide_up(clusters, slots / kernel.ctas), kernel.ctas);
    const double units = waves * (shares_tiles ? std::max(1.0, tiles / clusters) : divide_up(tiles, clusters));
    const double all_stages =
        shares_tiles ? waves * divide_up(stages * tiles / clusters, layers) : units * divide_up(stages, layers);
    // C comes from memory, sooner to one CTA than to its neighbours. Only clusters keep together.
    const bool in_step = !problem.has_c || cluster_size > 1 || units <= 1;
    const double loop = all_stages * stage_cycles(problem, shape, kernel, choice, beside, in_step);

    // A tile's epilogue. The next tile's loop waits for it, unless another consumer has that tile.
    const bool paired = kernel.consumers > 1 && !kernel.ping_pong && kernel.stages_in_turn == 1;
    const double written_rows = paired ? rows / kernel.consumers : rows;
    double epilogue = written_rows * row_cycles(problem, shape, kernel, choice, shares_tiles) / layers;
    if (kernel.stages_in_turn > 1) {
        epilogue += turns_cycles;
    }
    if (layers > 1) {
        epilogue += layers_cycles + rows * columns * (layers - 1) / layers / added_outputs_per_cycle;
    }
    double work = loop + epilogue * (units - 1);
    if (kernel.ping_pong) {
        const double own = std::ceil(units / 2);  // tiles of one consumer
        work = std::max(loop, own * loop / units + epilogue * (own - 1));
    }

    // Load of all CTAs on memory and on the power supply.
    const double own_tiles = divide_up(m, rows) * divide_up(n, columns) * batches;  // without those beyond D's edge
    const double even_clusters = shares_tiles ? clusters / waves : tiles / units;
    const double even_sms = even_clusters * layers * own_tiles / tiles / beside;
    const auto l2_bytes = static_cast<double>(device.l2_cache_bytes);
    double memory = memory_cycles(problem, shape, kernel, choice, l2_bytes, even_sms, !shares_tiles);
    const double loaded_rows = std::min(rows, m);
    const double loaded_columns = std::min(columns, n);
    if (layers > 1 || shares_tiles) {  // CTAs are at different parts of K, and request nothing at the same time
        const double requested = loaded_rows / choice.cluster_n + loaded_columns / choice.cluster_m;
        memory = std::max(memory, own_tiles * stages * 128 * requested / l2_bytes_per_cycle);
    }
    const double stage_heat = 2 * loaded_rows / 64 * loaded_columns + byte_heat * 128 * (loaded_rows + loaded_columns);
    const double heat = tiles * layer_size * stages * stage_heat / device.sm_count;

    const double shortness = std::clamp(2 - stages / short_stages, 0.0, 1.0);
    const double readers = std::min(std::max(down, across), clusters);  // of the lines that most clusters read
    double cycles = start_cycles * waves + side_by_side(work, memory) + epilogue +
                    (1 - shortness) * cluster_cycles * std::log2(cluster_size) +
                    shortness * (same_line_cycles * readers + short_output_cycles * written_rows * columns / layers);
    if (paired) {
        cycles += pair_cycles + shortness * short_pair_cycles;
    }
    if (2 * clusters <= slots / kernel.ctas) {
        cycles -= overlap_cycles;
    } else if (2 * clusters <= slots) {
        cycles -= shared_overlap_cycles;
    }
    if (const std::size_t bytes = kernel.copies ? 0 : repacked_bytes(problem); bytes > 0) {
        cycles += repack_cycles + 2 * static_cast<double>(bytes) / memory_bytes_per_cycle;  // read and written
    }
    if (shares_tiles) {
        // A cluster writes a part of one tile, or of two if its stages begin in one and end in the next. It reads as
        // much as it has written: its share of all parts.
        const double parts = std::fmod(clusters, tiles) == 0 ? 1 : 2;
        const double part_bytes = sizeof(float) * rows * columns / layers;
        cycles +=
            parts * (sharing_cycles + part_bytes * 2 / (shared_bytes_per_cycle * (paired ? kernel.consumers : 1)));
    }
    // Power grows with nearly the cube of the clock, so an excess lowers the clock by its cube root.
    return cycles * std::max(1.0, std::cbrt(heat / (sustained_share * cycles)));
}

KernelChoice cheapest(const GemmProblem& problem, const DeviceProperties& device, std::size_t workspace_limit)
{
    KernelChoice best{};
    double least = std::numeric_limits<double>::infinity();
    const bool is_limited = workspace_limit != std::numeric_limits<std::size_t>::max();
    const MeasuredChoice* const measured = find_measured(problem, device);
    for (const KernelChoice& choice : hopper_candidates(problem, device)) {
        if (is_limited && workspace_bytes(hopper_workspace(problem, choice)) > workspace_limit) {
            continue;
        }
        if (measured != nullptr && is_measured(*measured, choice)) {
            return choice;
        }
        const double cost = expected_cycles(problem, device, choice);
        if (cost < least) {  // in a tie the first: the model does not include the raster
            best = choice;
            least = cost;
        }
    }
    return best;
}

/// The inputs of `cheapest`.
struct Key {
    HopperShape shape;
    InputTypes input;
    ElementType output;
    Fp8Accumulation accumulation;
    bool d_row_major;
    bool has_c;
    BiasAxis bias;
    Activation activation;
    bool has_pre_activation;
    Gating gating;
    bool row_scales;
    bool column_scales;
    bool a_straddles;
    bool b_straddles;
    std::size_t repacked_bytes;
    bool may_repack;
    int sm_count;
    std::size_t l2_cache_bytes;
    std::size_t workspace_limit;

    friend bool operator==(const Key&, const Key&) = default;
};

std::size_t slot_of(const Key& key, std::size_t slots)
{
    std::uint64_t hash = 0;
    for (const std::int64_t value : {key.shape.m, key.shape.n, key.shape.k, key.shape.batches}) {
        hash = (hash ^ static_cast<std::uint64_t>(value)) * 0x9E3779B97F4A7C15U;  // 2^64 / golden ratio
    }
    return (hash >> 32) % slots;
}

}  // namespace

KernelChoice choose_hopper(const GemmProblem& problem, const DeviceProperties& device, std::size_t workspace_limit)
{
    // The model looks at hundreds of choices, a launch at one. Each thread remembers its latest choices.
    struct Entry {
        Key key{};
        KernelChoice choice{};
    };
    thread_local std::array<Entry, 64> remembered{};
    const Key key{hopper_shape(problem, false),
                  problem.input,
                  problem.output,
                  problem.fp8_accumulation,
                  problem.d.row_major,
                  problem.has_c,
                  problem.bias,
                  problem.activation,
                  problem.has_pre_activation,
                  problem.gating,
                  problem.row_scales,
                  problem.column_scales,
                  straddles_sectors(problem.a, problem.input.a),
                  straddles_sectors(problem.b, problem.input.b),
                  repacked_bytes(problem),
                  may_repack(problem, device),
                  device.sm_count,
                  device.l2_cache_bytes,
                  workspace_limit};
    Entry& entry = remembered[slot_of(key, remembered.size())];
    if (entry.choice.variant != Variant::hopper || entry.key != key) {
        entry = {key, cheapest(problem, device, workspace_limit)};
    }
    return entry.choice;
}

double expected_hopper_cycles(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    return expected_cycles(problem, device, choice);
}

std::string describe_hopper(const GemmProblem& problem, const KernelChoice& choice)
{
    const HopperKernel& kernel = kernels::hopper_kernels(size_of(problem.input))[choice.config];
    const HopperShape given = hopper_shape(problem, is_transposed(problem));  // A and B as the user has them
    const bool repacks = !kernel.copies;
    return fmt::format("{}{}, {} clusters of {}x{}x{} CTAs, raster groups of {} tiles{}{}", kernel.name,
                       choice.swapped ? " of the transposed product" : "", choice.clusters, choice.cluster_m,
                       choice.cluster_n, choice.cluster_k, choice.band, choice.stream_k ? ", stream-K" : "",
                       repacks && given.a_by_threads && given.b_by_threads ? ", A and B repacked first"
                       : repacks && given.a_by_threads                     ? ", A repacked first"
                       : repacks && given.b_by_threads                     ? ", B repacked first"
                                                                           : "");
}

}  // namespace tessera::detail
