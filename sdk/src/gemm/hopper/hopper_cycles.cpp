#include "gemm/hopper/hopper_cycles.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "gemm/gemm_operands.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/hopper/hopper_repack.hpp"

namespace tessera::detail {
namespace {

using kernels::HopperKernel;

// Cycles are SM cycles, at about 1.75 GHz; docs/notes/hopper-chooser.md says where each constant comes from.
// Measured, or given by the architecture:
constexpr double consumer_stage_cycles = 280;          // per stage, however small the tile
constexpr double shared_memory_bytes_per_cycle = 128;  // per SM
// Fitted to the times of all candidates for 22 problems, some again to 170 others, on an H200 with bf16:
constexpr double ingest_bytes_per_cycle = 70;    // that an SM can take in
constexpr double memory_bytes_per_cycle = 2580;  // device memory, all SMs together
constexpr double epilogue_row_cycles = 25;       // per row that a consumer writes, and per output:
constexpr double epilogue_output_cycles = 0.04;
constexpr double turns_cycles = 400;                // until consumers that take turns have added up their sums
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

/// Returns the time of two activities that overlap, but do not hide each other completely.
double side_by_side(double one, double other)
{
    return std::pow(std::pow(one, side_by_side_exponent) + std::pow(other, side_by_side_exponent),
                    1 / side_by_side_exponent);
}

/// A candidate: a product, as the kernel of a choice computes it.
struct Candidate {
    const GemmProblem& problem;
    const DeviceProperties& device;
    const KernelChoice& choice;
    const HopperKernel& kernel;
    HopperShape shape;
    double m;
    double n;
    double rows;  // of a tile
    double columns;
    double loaded_rows;  // of those, that are not beyond the edge of a small product
    double loaded_columns;
    double down;  // clusters that read the same row of B, and of A
    double across;
    double tiles;     // that a cluster computes at a time, all batches together
    double stages;    // of a tile
    double clusters;  // in the grid
    double layers;    // of a cluster, along K
    double layer_size;
    double cluster_size;
    bool shares_tiles;      // clusters share some tiles: stream-K
    bool shares_consumers;  // the consumers share a CTA's tile
    double written_rows;    // of a tile, by one consumer
};

Candidate candidate_of(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    const HopperKernel& kernel = kernels::hopper_kernels(size_of(problem.input))[choice.config];
    const HopperShape shape = hopper_shape(problem, choice.swapped);
    const auto m = static_cast<double>(shape.m);
    const auto n = static_cast<double>(shape.n);
    const double rows = kernel.tile_m;
    const double columns = kernel.tile_n;
    const double down = divide_up(m, rows * choice.cluster_m);
    const double across = divide_up(n, columns * choice.cluster_n);
    const double tiles = down * across * static_cast<double>(shape.batches);
    const double turn_k = static_cast<double>(kernel.block_k) * kernel.stages_in_turn;
    const double turns = std::max(divide_up(static_cast<double>(shape.k), turn_k), 1.0);
    const double layer_size = choice.cluster_m * choice.cluster_n;
    const bool shares_consumers = kernel.consumers > 1 && !kernel.ping_pong && kernel.stages_in_turn == 1;
    return {.problem = problem,
            .device = device,
            .choice = choice,
            .kernel = kernel,
            .shape = shape,
            .m = m,
            .n = n,
            .rows = rows,
            .columns = columns,
            .loaded_rows = std::min(rows, m),
            .loaded_columns = std::min(columns, n),
            .down = down,
            .across = across,
            .tiles = tiles,
            .stages = turns * kernel.stages_in_turn,
            .clusters = static_cast<double>(choice.clusters),
            .layers = static_cast<double>(choice.cluster_k),
            .layer_size = layer_size,
            .cluster_size = layer_size * choice.cluster_k,
            .shares_tiles = choice.stream_k && std::fmod(tiles, choice.clusters) != 0,
            .shares_consumers = shares_consumers,
            .written_rows = shares_consumers ? rows / kernel.consumers : rows};
}

/// Returns true if rows of the operand that the kernel has as A (or as B) begin inside a sector. An operand that threads
/// copy, or that is repacked first, counts as one without.
bool loads_straddle(const Candidate& c, bool of_a)
{
    const GemmProblem& problem = c.problem;
    const bool given_a = of_a == (c.choice.swapped == is_transposed(problem));
    return !(of_a ? c.shape.a_by_threads : c.shape.b_by_threads) &&
           (given_a ? straddles_sectors(problem.a, problem.input.a) : straddles_sectors(problem.b, problem.input.b));
}

/// Cycles from one stage to the next, for all CTAs of an SM that run `beside` each other. `in_step`: CTAs that read the
/// same rows request them at the same time.
double stage_cycles(const Candidate& c, double beside, bool in_step)
{
    const HopperKernel& kernel = c.kernel;
    const KernelChoice& choice = c.choice;
    // Four instructions of 32 bytes of K each for 64 rows: their math, or the time to read both operands from shared memory.
    const auto math_cycles = [](double width) { return 4 * width / 2; };
    const auto read_cycles = [](double width) { return (64 + width) * 128 / shared_memory_bytes_per_cycle; };
    const auto block_cycles = [&](double width) { return std::max(math_cycles(width), read_cycles(width)); };
    const double write_cycles = (c.loaded_rows + c.loaded_columns) * 128 / shared_memory_bytes_per_cycle;
    const double tensor = std::max(c.rows / 64 * math_cycles(c.columns),
                                   c.rows / 64 * read_cycles(c.columns) + written_share * write_cycles);
    double promoted = 0;  // until a CTA has multiplied a stage and added its sums
    if (is_float8(c.problem.input) && c.problem.fp8_accumulation == Fp8Accumulation::two_level) {
        // A consumer waits for each part of its tile. Meanwhile the other one multiplies, if they share the tile, or the
        // other CTA of the SM.
        const double part = block_cycles(kernel.two_level_columns);
        const double parts = c.rows / 64 * c.columns / kernel.two_level_columns;
        const bool together = kernel.consumers > 1 && !kernel.ping_pong;
        const bool contended = together || beside > 1;
        const double both = part + promotion_cycles + (contended ? part * part / (part + promotion_cycles) : 0);
        promoted = std::max(parts * part, parts * both / (together ? kernel.consumers : 1));
    }

    const double a_bytes = 128 * c.loaded_rows;
    const double b_bytes = 128 * c.loaded_columns;
    const auto asked_rate = [&](bool of_a) {
        const bool shared = (of_a ? choice.cluster_n : choice.cluster_m) > 1;
        return loads_straddle(c, of_a) ? straddled_bytes_per_cycle
               : shared                ? multicast_bytes_per_cycle
                                       : ingest_bytes_per_cycle;
    };
    const double loads = (a_bytes + b_bytes) / (in_step ? ingest_bytes_per_cycle : ingest_bytes_out_of_step);
    const double asked = a_bytes / choice.cluster_n / asked_rate(true) + b_bytes / choice.cluster_m / asked_rate(false);
    // TMA asks for such lines one by one, and writes those that others ask for, too.
    const auto straddled_lines = [&](bool of_a) {
        const bool k_major = of_a ? c.shape.a_k_major : c.shape.b_k_major;
        if (k_major || !loads_straddle(c, of_a)) {
            return 0.0;
        }
        const double line = 128 / static_cast<double>(size_of(c.problem.input));
        const double lines = kernel.block_k * divide_up(of_a ? c.loaded_rows : c.loaded_columns, line);
        return lines * (1 + 1.0 / (of_a ? choice.cluster_n : choice.cluster_m)) / 2;
    };
    const double lines = straddled_lines(true) + straddled_lines(false);
    const double copied_rows = (c.shape.a_by_threads ? c.rows : 0) + (c.shape.b_by_threads ? c.columns : 0);
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

/// Cycles per row of a tile that a consumer needs to finish and store it. If clusters share the tile, each stores a slice.
double row_cycles(const Candidate& c)
{
    const GemmProblem& problem = c.problem;
    const std::size_t d_columns = static_cast<std::size_t>(c.kernel.tile_n) / (problem.gating == Gating::none ? 1 : 2);
    const bool by_tma = !c.choice.swapped && d_columns * size_of(problem.output) % 16 == 0;
    const bool activates = problem.activation != Activation::none && problem.activation != Activation::relu;
    const double activated = activates ? stored_share(problem) : 0;
    if (!by_tma) {
        // The other columns are beyond D.
        return epilogue_row_cycles + (c.shares_tiles ? 0 : general_row_cycles) +
               c.loaded_columns * (general_output_cycles + activated * general_activation_output_cycles);
    }
    const kernels::HopperFinishing finishing = finishing_of(epilogue_of(problem), c.kernel, c.kernel.carries_c);
    if (finishing == kernels::HopperFinishing::plain) {
        return epilogue_row_cycles + c.columns * epilogue_output_cycles;
    }
    if (finishing != kernels::HopperFinishing::other) {
        return epilogue_row_cycles +
               c.columns * (epilogue_output_cycles + fused_output_cycles + activated * activation_output_cycles);
    }
    const bool is_crowded = c.written_rows * c.columns / 128 > 128;
    return epilogue_row_cycles + c.columns * (other_output_cycles + (is_crowded ? crowded_output_cycles : 0) +
                                              activated * other_activation_output_cycles);
}

/// Cycles from the last stage of a tile until its consumer has stored its part.
double epilogue_cycles(const Candidate& c)
{
    double cycles = c.written_rows * row_cycles(c) / c.layers;
    if (c.kernel.stages_in_turn > 1) {
        cycles += turns_cycles;
    }
    if (c.layers > 1) {
        cycles += layers_cycles + c.rows * c.columns * (c.layers - 1) / c.layers / added_outputs_per_cycle;
    }
    return cycles;
}

/// What the busiest SM does.
struct Busiest {
    double waves;   // of clusters
    double beside;  // CTAs at a time
    double tiles;   // of each of its places for a CTA, all waves together, and their stages
    double stages;
};

Busiest busiest_of(const Candidate& c, double slots)
{
    const double waves = divide_up(c.clusters, slots);
    const double beside = std::min<double>(divide_up(c.clusters, slots / c.kernel.ctas), c.kernel.ctas);
    if (c.shares_tiles) {
        return {waves, beside, waves * std::max(1.0, c.tiles / c.clusters),
                waves * divide_up(c.stages * c.tiles / c.clusters, c.layers)};
    }
    const double tiles = waves * divide_up(c.tiles, c.clusters);
    return {waves, beside, tiles, tiles * divide_up(c.stages, c.layers)};
}

/// Cycles of the busiest SM, up to the last tile's epilogue.
double work_cycles(const Candidate& c, const Busiest& busiest, double epilogue)
{
    // C comes from memory, sooner to one CTA than to its neighbours. Only clusters keep together.
    const bool in_step = !c.problem.has_c || c.cluster_size > 1 || busiest.tiles <= 1;
    const double loop = busiest.stages * stage_cycles(c, busiest.beside, in_step);
    if (c.kernel.ping_pong) {
        const double own = std::ceil(busiest.tiles / 2);  // tiles of one consumer
        return std::max(loop, own * loop / busiest.tiles + epilogue * (own - 1));
    }
    return loop + epilogue * (busiest.tiles - 1);  // the next tile's loop waits for it
}

/// Tiles of D, without those of a cluster that are beyond its edge.
double own_tiles(const Candidate& c)
{
    return divide_up(c.m, c.rows) * divide_up(c.n, c.columns) * static_cast<double>(c.shape.batches);
}

/// Cycles that memory and L2 need to serve all CTAs. `sms`: SMs that would do all work if each did as much as the busiest
/// one.
double memory_cycles(const Candidate& c, double sms)
{
    const GemmProblem& problem = c.problem;
    const auto batches = static_cast<double>(c.shape.batches);
    const double row_bytes = batches * static_cast<double>(c.shape.k) * static_cast<double>(size_of(problem.input));
    const int matrices = 1 + (problem.has_c ? 1 : 0) + (problem.has_pre_activation ? 1 : 0);
    const double d_bytes =
        batches * c.m * c.n * stored_share(problem) * static_cast<double>(size_of(problem.output)) * matrices;
    const double repeated_rows = std::max(c.m * (c.across - 1) * (c.m < c.n ? small_operand_share : 1),
                                          c.n * (c.down - 1) * (c.n < c.m ? small_operand_share : 1));
    // CTAs that share tiles read the same row at different times, and L2 has lost it before it is requested again, unless it
    // holds both operands. Where rows run along the tile's edge and begin inside a sector, neighbouring tiles request the
    // same lines.
    const double matrix_row_bytes = row_bytes / batches;
    const auto l2_bytes = static_cast<double>(c.device.l2_cache_bytes);
    const bool keeps_all = !c.shares_tiles || (c.m + c.n) * matrix_row_bytes <= l2_bytes;
    const auto reads = [&](double extent, double times, bool of_a) {
        if (keeps_all || extent * matrix_row_bytes <= l2_bytes / 4) {
            return extent * row_bytes;
        }
        const bool along_k = of_a ? c.shape.a_k_major : c.shape.b_k_major;
        return extent * row_bytes * times * (!along_k && loads_straddle(c, of_a) ? 2 : 1);
    };
    // An operand along M or N is read in pieces as long as the edge of what a cluster reads, unless it reads whole lines.
    const auto pauses = [&](double extent, double read, bool k_major) {
        return k_major || read >= extent
                   ? 0
                   : extent * row_bytes * piece_bytes / (read * static_cast<double>(size_of(problem.input)));
    };
    const double bytes = reads(c.m, c.across, true) + reads(c.n, c.down, false) + d_bytes +
                         pauses(c.m, c.rows * c.choice.cluster_m, c.shape.a_k_major) +
                         pauses(c.n, c.columns * c.choice.cluster_n, c.shape.b_k_major);
    const double rate = std::min(memory_bytes_per_cycle, sms * sm_memory_bytes_per_cycle);
    const double cycles = bytes / rate + repeated_rows * row_bytes / repeated_bytes_per_cycle;
    if (c.layers == 1 && !c.shares_tiles) {
        return cycles;
    }
    // CTAs are at different parts of K, and request nothing at the same time.
    const double requested = c.loaded_rows / c.choice.cluster_n + c.loaded_columns / c.choice.cluster_m;
    return std::max(cycles, own_tiles(c) * c.stages * 128 * requested / l2_bytes_per_cycle);
}

/// Cycles of clusters that start and end together. Those of a short product all wait for their first stages at once.
double cluster_start_cycles(const Candidate& c)
{
    const double shortness = std::clamp(2 - c.stages / short_stages, 0.0, 1.0);
    const double readers = std::min(std::max(c.down, c.across), c.clusters);  // of the lines that most clusters read
    return (1 - shortness) * cluster_cycles * std::log2(c.cluster_size) +
           shortness * (same_line_cycles * readers + short_output_cycles * c.written_rows * c.columns / c.layers) +
           (c.shares_consumers ? pair_cycles + shortness * short_pair_cycles : 0);
}

/// Cycles of the start that a kernel saves which runs beside the previous one.
double saved_by_overlap(const Candidate& c, double slots)
{
    return 2 * c.clusters <= slots / c.kernel.ctas ? overlap_cycles
           : 2 * c.clusters <= slots               ? shared_overlap_cycles
                                                   : 0;
}

/// Cycles of clusters that share tiles: each writes a part of one tile, or of two if its stages begin in one and end in the
/// next, and reads as much as it has written: its share of all parts.
double sharing_tiles_cycles(const Candidate& c)
{
    const double parts = std::fmod(c.clusters, c.tiles) == 0 ? 1 : 2;
    const double part_bytes = sizeof(float) * c.rows * c.columns / c.layers;
    const double consumers = c.shares_consumers ? c.kernel.consumers : 1;
    return parts * (sharing_cycles + part_bytes * 2 / (shared_bytes_per_cycle * consumers));
}

/// Energy of the product, in cycles of all tensor cores.
double heat_of(const Candidate& c)
{
    const double stage =
        2 * c.loaded_rows / 64 * c.loaded_columns + byte_heat * 128 * (c.loaded_rows + c.loaded_columns);
    return c.tiles * c.layer_size * c.stages * stage / c.device.sm_count;
}

}  // namespace

double expected_hopper_cycles(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    const Candidate c = candidate_of(problem, device, choice);
    const auto slots = static_cast<double>(hopper_cluster_slots(device, c.kernel, static_cast<int>(c.cluster_size)));
    const Busiest busiest = busiest_of(c, slots);
    const double even_clusters = c.shares_tiles ? c.clusters / busiest.waves : c.tiles / busiest.tiles;
    const double even_sms = even_clusters * c.layers * own_tiles(c) / c.tiles / busiest.beside;
    const double epilogue = epilogue_cycles(c);
    const double work = side_by_side(work_cycles(c, busiest, epilogue), memory_cycles(c, even_sms));

    double cycles =
        start_cycles * busiest.waves + work + epilogue + cluster_start_cycles(c) - saved_by_overlap(c, slots);
    if (const std::size_t bytes = c.kernel.copies ? 0 : repacked_bytes(problem); bytes > 0) {
        cycles += repack_cycles + 2 * static_cast<double>(bytes) / memory_bytes_per_cycle;  // read and written
    }
    if (c.shares_tiles) {
        cycles += sharing_tiles_cycles(c);
    }
    // Power grows with nearly the cube of the clock, so an excess lowers the clock by its cube root.
    return cycles * std::max(1.0, std::cbrt(heat_of(c) / (sustained_share * cycles)));
}

bool straddles_sectors(const MatrixLayout& layout, ElementType type)
{
    constexpr std::size_t sector_bytes = 32;
    const auto row_bytes = static_cast<std::size_t>(layout.leading_dimension) * size_of(type);
    return row_bytes % sector_bytes != 0 || layout.address_alignment % sector_bytes != 0;
}

}  // namespace tessera::detail
