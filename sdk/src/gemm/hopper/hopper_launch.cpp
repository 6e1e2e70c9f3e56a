#include "gemm/hopper/hopper_launch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <utility>

#include "gemm/gemm_operands.hpp"
#include "gemm/hopper/hopper_repack.hpp"
#include "gemm/tma_matrix.hpp"
#include "kernels/hopper/hopper_config.hpp"

namespace tessera::detail {
namespace {

using kernels::HopperKernel;

constexpr int max_cluster_size = 8;                     // every device of compute capability 9.0 can schedule it
constexpr std::int64_t max_swapped_n = 128;             // beyond, a tile's height is not wasted
constexpr std::int64_t most_waves_to_share = 8;         // beyond, the idle share of the last wave is small
constexpr std::int64_t max_shared_stages = 0x7FFFFFFF;  // the kernel counts them in 31 bits
constexpr std::int64_t fewest_stages_of_a_part = 4;     // fewer do not pay for summing up
/// Heights of raster groups, in cluster tiles, best first. With groups of eight, the SMs that share a path to L2 most
/// often request the same data. A shorter group after a taller one spoils that.
constexpr std::array<std::uint8_t, 3> bands{8, 16, 4};
constexpr std::array<std::uint8_t, 3> bands_of_few_rows{16, 8, 4};
constexpr std::array<std::pair<std::uint8_t, std::uint8_t>, 8> cluster_shapes{
    {{1, 1}, {1, 2}, {2, 1}, {2, 2}, {4, 1}, {1, 4}, {4, 2}, {2, 4}}};

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

const HopperKernel& kernel_of(const GemmProblem& problem, const KernelChoice& choice)
{
    return kernels::hopper_kernels(size_of(problem.input))[choice.config];
}

/// Number of cluster tiles.
std::int64_t tiles_of(const HopperKernel& kernel, const HopperShape& shape, const KernelChoice& choice)
{
    return divide_up(shape.m, std::int64_t{kernel.tile_m} * choice.cluster_m) *
           divide_up(shape.n, std::int64_t{kernel.tile_n} * choice.cluster_n) * shape.batches;
}

/// Number of stages per tile.
std::int64_t stages_of(const HopperKernel& kernel, std::int64_t k)
{
    const std::int64_t turn = std::int64_t{kernel.block_k} * kernel.stages_in_turn;
    return std::max<std::int64_t>(divide_up(k, turn), 1) * kernel.stages_in_turn;
}

kernels::HopperTypes types_of(ElementType a, ElementType b)
{
    using Types = kernels::HopperTypes;
    switch (a) {
        case ElementType::f16: return Types::f16;
        case ElementType::bf16: return Types::bf16;
        case ElementType::f8e4m3: return b == ElementType::f8e4m3 ? Types::e4m3_e4m3 : Types::e4m3_e5m2;
        case ElementType::f8e5m2: return b == ElementType::f8e4m3 ? Types::e5m2_e4m3 : Types::e5m2_e5m2;
        case ElementType::tf32:
        case ElementType::f32: break;
    }
    return Types::tf32;
}

/// Distributes the tiles of `gemm.raster`.
kernels::HopperWork work_of(const HopperKernel& kernel, const kernels::GemmArguments& gemm, std::int64_t batches,
                            const KernelChoice& choice)
{
    const auto k_blocks = static_cast<std::uint32_t>(stages_of(kernel, gemm.k));
    kernels::HopperWork work{};
    work.tiles = gemm.raster.tiles() * static_cast<std::uint32_t>(batches);
    work.k_blocks = Divisor(k_blocks);
    work.skip_k = gemm.k == 0;
    work.stream_k = choice.stream_k;
    if (choice.stream_k) {
        work.split = StreamKSplit(work.tiles, k_blocks, choice.clusters);
    }
    return work;
}

/// Returns true if CTAs can share a tile's rows evenly: by whole rows, which the swizzle places by their address, or by
/// whole boxes along M or N.
constexpr bool can_share(int rows, int sharers, bool k_major)
{
    return rows % (sharers * (k_major ? 1 : kernels::hopper_mn_major_lines)) == 0;
}

/// Returns how many rows of an operand's tile TMA loads, if it loads them along K. An operand with fewer rows than the
/// tile loads no more than it has, because zeros cost as much time as data. Rounded up to eight, so that the CTAs of a
/// cluster can divide them.
std::uint32_t loaded_rows(int tile_rows, std::int64_t rows, bool along_k)
{
    const std::int64_t needed = divide_up(std::max<std::int64_t>(rows, 1), max_cluster_size) * max_cluster_size;
    return static_cast<std::uint32_t>(along_k ? std::min<std::int64_t>(tile_rows, needed) : tile_rows);
}

/// Returns how many stages each CTA prefetches into L2 while it waits for the previous kernel. More stages hide more of
/// the memory latency, until they take bandwidth from that kernel or time from the loads. Products that read both
/// operands more than once gain nothing. Measured on an H200: docs/notes/hopper-performance.md has the figures.
std::uint32_t prefetched_stages(const kernels::HopperArguments& arguments, const kernels::HopperWork& work)
{
    constexpr std::uint32_t smallest_part = 4;  // of K
    constexpr std::int64_t memory_bound_rows = 64;
    if (!arguments.a_read_once && !arguments.b_read_once) {
        return 0;
    }
    const std::uint32_t most = std::min(arguments.gemm.m, arguments.gemm.n) <= memory_bound_rows ? 8 : 4;
    return std::clamp<std::uint32_t>(work.k_blocks.value() / smallest_part, 1, most);
}

/// Columns of D in a tile: half of B's, if they are gated pairs.
int tile_columns_of_d(const kernels::GemmArguments& gemm, const HopperKernel& kernel)
{
    return gemm.gating == Gating::none ? kernel.tile_n : kernel.tile_n / 2;
}

/// Returns true if TMA can store tiles of D, which must begin at whole chunks, too.
bool is_d_addressable(const TmaMatrix& d, int tile_columns)
{
    return tile_columns * d.element_bytes % tma_alignment == 0 && d.is_addressable() && d.has_whole_chunks();
}

HopperEpilogue epilogue_of(const kernels::GemmArguments& gemm)
{
    return {.d = gemm.d_type,
            .c = gemm.c_type,
            .has_c = gemm.beta != 0,
            .bias = gemm.bias_axis,
            .activation = gemm.activation,
            .gating = gemm.gating,
            .has_scale_vectors = gemm.has_scale_vectors(),
            .has_pre_activation = gemm.pre_activation.data != nullptr};
}

/// Returns how many columns of D one TMA store writes, unless the rest of a tile has fewer.
int store_width(const kernels::GemmArguments& gemm, const HopperKernel& kernel, kernels::HopperFinishing finishing)
{
    const int width =
        kernels::HopperConfig::store_width(tile_columns_of_d(gemm, kernel), static_cast<int>(size_of(gemm.d_type)));
    if (finishing != kernels::HopperFinishing::other) {
        return width;
    }
    return std::min(width, kernel.epilogue_columns / (gemm.gating == Gating::none ? 1 : 2));
}

/// Returns true if C can come through the ring of stages.
bool may_carry_c(const kernels::GemmArguments& gemm, const HopperKernel& kernel, std::int64_t batches,
                 const KernelChoice& choice)
{
    const TmaMatrix c = tma_c(gemm, batches);
    return kernel.carries_c && choice.cluster_k == 1 && gemm.beta != 0 &&
           is_d_addressable(tma_d(gemm, batches), tile_columns_of_d(gemm, kernel)) && c.is_addressable() &&
           c.has_whole_chunks();
}

/// Encodes the maps of D, the pre-activation and C. If that fails, the kernel stores or loads without TMA instead.
void encode_epilogue(kernels::HopperArguments& arguments, const DeviceProperties& device, const HopperKernel& kernel,
                     std::int64_t batches, bool carries_c)
{
    const kernels::GemmArguments& gemm = arguments.gemm;
    const auto is_encoded = [&](const TmaMatrix& matrix, int columns, AnyTensorMap<3>& map) {
        const TmaBox box{.run = static_cast<std::uint32_t>(columns), .lines = kernels::hopper_store_rows};
        const cudaError_t status = encode_map(device, matrix, box, map).status;
        forget(status);
        return status == cudaSuccess;
    };
    // The boxes of a tile's row: of `width` columns, and of what then is left.
    const auto are_encoded = [&](const TmaMatrix& matrix, int tile_columns, int width, AnyTensorMap<3>& map,
                                 AnyTensorMap<3>& map_of_rest) {
        const int rest = tile_columns % width;
        return is_encoded(matrix, width, map) && (rest == 0 || is_encoded(matrix, rest, map_of_rest));
    };
    const TmaMatrix c = tma_c(gemm, batches);
    const int c_width = std::min(static_cast<int>(128 / c.element_bytes), kernel.tile_n);
    if (carries_c && are_encoded(c, kernel.tile_n, c_width, arguments.c, arguments.c_rest)) {
        arguments.work.c_slots =
            static_cast<std::uint32_t>(c.element_bytes == 4 ? kernel.c_slots_f32 : kernel.c_slots_16_bit);
    }
    arguments.finishing = finishing_of(epilogue_of(gemm), kernel, arguments.work.c_slots > 0);

    const int tile_columns = tile_columns_of_d(gemm, kernel);
    const int width = store_width(gemm, kernel, arguments.finishing);
    const TmaMatrix d = tma_d(gemm, batches);
    arguments.stores_by_tma =
        is_d_addressable(d, tile_columns) && are_encoded(d, tile_columns, width, arguments.d, arguments.d_rest);
    if (!arguments.stores_by_tma) {
        arguments.finishing = kernels::HopperFinishing::other;
        arguments.work.c_slots = 0;
    }
    const TmaMatrix x = tma_pre_activation(gemm, batches);
    arguments.stores_pre_activation_by_tma =
        arguments.stores_by_tma && x.data != nullptr && gemm.pre_activation.type == gemm.d_type && x.is_addressable() &&
        x.has_whole_chunks() &&
        are_encoded(x, tile_columns, width, arguments.pre_activation, arguments.pre_activation_rest);
}

}  // namespace

kernels::HopperFinishing finishing_of(const HopperEpilogue& epilogue, const HopperKernel& kernel, bool carries_c)
{
    using kernels::HopperFinishing;
    if (epilogue.has_scale_vectors || epilogue.has_pre_activation || is_float8(epilogue.d)) {
        return HopperFinishing::other;
    }
    if (epilogue.gating != Gating::none) {
        const bool is_streamed = kernel.streams_parts && size_of(epilogue.d) == 2 && !epilogue.has_c &&
                                 epilogue.bias != BiasAxis::per_row && epilogue.activation == Activation::silu;
        return is_streamed ? HopperFinishing::gated_silu : HopperFinishing::other;
    }
    const bool adds_nothing = epilogue.bias == BiasAxis::none && epilogue.activation == Activation::none;
    if (!epilogue.has_c && adds_nothing) {
        return HopperFinishing::plain;
    }
    if (!kernel.streams || size_of(epilogue.d) != 2) {
        return HopperFinishing::other;
    }
    if (epilogue.has_c) {
        return carries_c && adds_nothing && size_of(epilogue.c) == 2 ? HopperFinishing::residual
                                                                     : HopperFinishing::other;
    }
    if (epilogue.bias == BiasAxis::per_row) {
        return HopperFinishing::other;
    }
    switch (epilogue.activation) {
        case Activation::none:
        case Activation::relu: return HopperFinishing::bias;
        case Activation::gelu_tanh: return HopperFinishing::bias_gelu_tanh;
        case Activation::gelu: return kernel.streams_parts ? HopperFinishing::bias_gelu : HopperFinishing::other;
        case Activation::silu: return kernel.streams_parts ? HopperFinishing::bias_silu : HopperFinishing::other;
        default: return HopperFinishing::other;
    }
}

HopperShape hopper_shape(const GemmProblem& problem, bool swapped)
{
    const auto by_threads = [&](const MatrixLayout& layout, bool k_major, std::int64_t lines) {
        // The tensor core reads 16-bit operands in either major, all others K-major.
        return (!k_major && size_of(problem.input) != 2) ||
               !tma_can_load(layout, size_of(problem.input), lines, problem.batches);
    };
    HopperShape shape{
        .m = problem.m,
        .n = problem.n,
        .k = problem.k,
        .batches = problem.batches,
        .a_k_major = problem.a.row_major,
        .b_k_major = !problem.b.row_major,
        .a_by_threads = by_threads(problem.a, problem.a.row_major, problem.a.row_major ? problem.m : problem.k),
        .b_by_threads = by_threads(problem.b, !problem.b.row_major, problem.b.row_major ? problem.k : problem.n)};
    if (swapped != is_transposed(problem)) {
        std::swap(shape.m, shape.n);
        std::swap(shape.a_k_major, shape.b_k_major);
        std::swap(shape.a_by_threads, shape.b_by_threads);
    }
    return shape;
}

std::optional<Refusal> find_hopper_refusal(const GemmProblem& problem, const DeviceProperties& device)
{
    using Reason = Refusal::Reason;
    if (device.compute_capability() != hopper_compute_capability) {
        return Refusal{.reason = Reason::architecture, .needs = "is for 9.0 only"};
    }
    if (problem.input == InputTypes(ElementType::f32)) {
        return Refusal{Reason::needs_tf32};
    }
    if (kernels::hopper_kernels(size_of(problem.input)).empty()) {
        return Refusal{Reason::not_built, ' ', 0, hopper_compute_capability};
    }
    if (problem.gating != Gating::none) {
        const HopperShape shape = hopper_shape(problem, false);
        const auto line_bytes = problem.n / 2 * static_cast<std::int64_t>(size_of(problem.input));
        // Interleaved columns are taken apart by the map of B, which cannot step over contiguous ones. Of contiguous
        // ones, the second half must begin at a multiple of 16 bytes.
        const bool loads_b =
            shape.b_k_major || (problem.gating == Gating::side_by_side && line_bytes % tma_alignment == 0);
        if (shape.a_by_threads || shape.b_by_threads || !loads_b) {
            return Refusal{Reason::gated_operand, shape.a_by_threads ? 'A' : 'B'};
        }
        if (problem.batches > 1 && problem.b.batch_stride != 0) {
            return Refusal{Reason::gated_batch};
        }
    }
    if (const std::int64_t largest = std::max({problem.m, problem.n, problem.k, problem.batches});
        largest > tma_extent_limit) {
        return Refusal{Reason::grid_size, ' ', largest, tma_extent_limit};
    }
    return std::nullopt;
}

bool is_hopper_choice_valid(const GemmProblem& problem, const DeviceProperties& device, const KernelChoice& choice)
{
    const auto table = kernels::hopper_kernels(size_of(problem.input));
    if (choice.config >= table.size() || choice.clusters == 0 || choice.band == 0 || choice.cluster_m == 0 ||
        choice.cluster_n == 0 || choice.cluster_k == 0) {
        return false;
    }
    const HopperKernel& kernel = table[choice.config];
    const HopperShape shape = hopper_shape(problem, choice.swapped);
    const int cluster_size = choice.cluster_m * choice.cluster_n * choice.cluster_k;
    const bool cluster = cluster_size <= max_cluster_size && std::has_single_bit(choice.cluster_m) &&
                         std::has_single_bit(choice.cluster_n) && std::has_single_bit(choice.cluster_k);
    // The tensor core reads 16-bit operands in either major, all others K-major.
    const bool along_k = size_of(problem.input) != 2;
    const bool boxes = can_share(kernel.tile_m, choice.cluster_n, along_k || shape.a_k_major) &&
                       can_share(kernel.tile_n, choice.cluster_m, along_k || shape.b_k_major);
    const bool two_level = is_float8(problem.input) && problem.fp8_accumulation == Fp8Accumulation::two_level;
    const bool accumulation = !two_level || kernel.two_level_columns > 0;
    const bool by_threads = shape.a_by_threads || shape.b_by_threads;
    const bool loads = kernel.copies ? by_threads && choice.cluster_m * choice.cluster_n == 1
                                     : !by_threads || may_repack(problem, device);
    // Pairs are columns of one CTA's tile, which must not be exchanged with rows, shared or summed up elsewhere.
    const bool pairs =
        problem.gating == Gating::none ||
        (kernel.gates && !choice.swapped && choice.cluster_m == 1 && choice.cluster_k == 1 && !choice.stream_k &&
         (shape.b_k_major || kernel.tile_n / 2 % kernels::hopper_mn_major_lines == 0));
    if (!cluster || !boxes || !accumulation || !loads || !pairs || (choice.stream_k && !kernel.shares_tiles) ||
        (choice.cluster_k > 1 && !kernel.has_layers())) {
        return false;
    }
    const std::int64_t tiles = tiles_of(kernel, shape, choice);
    const std::int64_t stages = stages_of(kernel, shape.k);
    if (tiles == 0 || (choice.stream_k && tiles * stages > max_shared_stages)) {
        return false;
    }
    if (choice.cluster_k == 1) {
        // A tile's sharers are all clusters from its first to its last: each must have a stage.
        return choice.clusters * cluster_size <= device.sm_count * kernel.ctas &&
               (!choice.stream_k || choice.clusters <= tiles * stages);
    }
    // A cluster that splits K has one work tile, with at least one stage per CTA.
    const std::int64_t units_per_tile = choice.clusters / tiles;
    return choice.clusters % tiles == 0 && choice.stream_k == (units_per_tile > 1) &&
           stages / units_per_tile >= choice.cluster_k;
}

std::vector<KernelChoice> hopper_candidates(const GemmProblem& problem, const DeviceProperties& device)
{
    std::vector<KernelChoice> candidates;
    if (problem.m == 0 || problem.n == 0 || problem.batches == 0) {
        return candidates;  // nothing is launched
    }
    const auto add = [&](KernelChoice choice, std::int64_t clusters) {
        if (clusters < 1 || clusters > std::numeric_limits<std::uint16_t>::max()) {
            return;
        }
        choice.clusters = static_cast<std::uint16_t>(clusters);
        if (is_hopper_choice_valid(problem, device, choice) &&
            std::find(candidates.begin(), candidates.end(), choice) == candidates.end()) {
            candidates.push_back(choice);
        }
    };
    const auto table = kernels::hopper_kernels(size_of(problem.input));
    for (std::size_t config = 0; config < table.size(); ++config) {
        const HopperKernel& kernel = table[config];
        for (const bool swapped : {false, true}) {
            const HopperShape shape = hopper_shape(problem, swapped);
            if (swapped && shape.n > max_swapped_n) {
                continue;
            }
            const std::int64_t stages = stages_of(kernel, shape.k);
            for (const auto& [cluster_m, cluster_n] : cluster_shapes) {
                KernelChoice choice{.variant = Variant::hopper,
                                    .config = static_cast<std::uint8_t>(config),
                                    .cluster_m = cluster_m,
                                    .cluster_n = cluster_n,
                                    .swapped = swapped};
                const std::int64_t tiles = tiles_of(kernel, shape, choice);
                const std::int64_t tiles_m = divide_up(shape.m, std::int64_t{kernel.tile_m} * cluster_m);
                const std::int64_t fit = hopper_cluster_slots(device, kernel, cluster_m * cluster_n);
                for (const std::uint8_t band : tiles_m <= bands_of_few_rows.front() ? bands_of_few_rows : bands) {
                    if (band > 4 && band / 2 >= tiles_m) {
                        continue;  // same order as with the shorter group
                    }
                    choice.band = band;
                    choice.cluster_k = 1;
                    choice.stream_k = false;
                    add(choice, std::min(fit, tiles));
                    // Sharing tiles pays off if whole tiles would leave SMs idle.
                    if (tiles > most_waves_to_share * fit || stages < 2 * fewest_stages_of_a_part) {
                        continue;
                    }
                    choice.stream_k = true;
                    if (tiles % fit != 0) {
                        add(choice, std::min(fit, tiles * stages / fewest_stages_of_a_part));
                    }
                    if (tiles < fit) {
                        add(choice, fit / tiles * tiles);
                    }
                    for (const std::uint8_t layers : std::array<std::uint8_t, 3>{2, 4, 8}) {
                        choice.cluster_k = layers;
                        choice.stream_k = false;
                        if (tiles * layers <= most_waves_to_share * fit) {
                            add(choice, tiles);
                        }
                        const std::int64_t parts = fit / layers / tiles;
                        choice.stream_k = true;
                        if (parts > 1) {
                            add(choice, tiles * parts);
                        }
                    }
                }
            }
        }
    }
    return candidates;
}

std::int64_t hopper_cluster_slots(const DeviceProperties& device, const HopperKernel& kernel, int cluster_size)
{
    // A cluster runs in one group of SMs, and some SMs of a group are left over: of 132 SMs,
    // cudaOccupancyMaxActiveClusters finds room for 66 clusters of 2, 30 of 4 and 15 of 8.
    constexpr double large_cluster_share = 0.92;
    const double share = cluster_size > 2 ? large_cluster_share : 1;
    return std::max<std::int64_t>(static_cast<std::int64_t>(device.sm_count * share / cluster_size) * kernel.ctas, 1);
}

WorkspaceNeed hopper_workspace(const GemmProblem& problem, const KernelChoice& choice)
{
    const HopperKernel& kernel = kernel_of(problem, choice);
    WorkspaceNeed need;
    if (choice.stream_k) {
        const auto cluster_size = static_cast<std::size_t>(choice.cluster_m * choice.cluster_n * choice.cluster_k);
        need.partial_bytes = kernel.workspace_bytes(choice.clusters, cluster_size);
        need.counters = kernel.workspace_counters(choice.clusters, cluster_size);
    }
    if (!kernel.copies) {
        need.copy_bytes = repacked_bytes(problem);
    }
    return need;
}

CallStatus encode_hopper(EncodedLaunch& launch, const GemmProblem& problem, const KernelChoice& planned,
                         const DeviceProperties& device, const kernels::GemmArguments& given,
                         const WorkspaceMemory& workspace)
{
    KernelChoice choice = planned;
    if (given.k == 0) {  // one stage of zeros, which cannot be divided
        choice.stream_k = false;
        choice.cluster_k = 1;
    }
    const HopperKernel& kernel = kernel_of(problem, choice);
    const std::size_t bytes = size_of(problem.input);
    auto& arguments = launch.emplace_arguments<kernels::HopperArguments>();
    arguments.gemm = choice.swapped ? transposed(given) : given;
    const kernels::GemmArguments& gemm = arguments.gemm;  // of the copies, if operands are repacked
    const std::int64_t batches = problem.batches;
    const HopperShape shape = hopper_shape(problem, choice.swapped);
    arguments.a_k_major = shape.a_k_major || gemm.k == 0;  // zeros have the order that every kernel supports
    arguments.b_k_major = shape.b_k_major || gemm.k == 0;
    arguments.a_by_threads = shape.a_by_threads && gemm.k > 0;
    arguments.b_by_threads = shape.b_by_threads && gemm.k > 0;
    arguments.a_batched = tma_a(gemm, arguments.a_k_major, batches).batched();
    arguments.b_batched = tma_b(gemm, arguments.b_k_major, batches).batched();
    arguments.types = types_of(gemm.a_type, gemm.b_type);
    arguments.two_level = is_float8(problem.input) && problem.fp8_accumulation == Fp8Accumulation::two_level;
    arguments.cluster_m = choice.cluster_m;
    arguments.cluster_n = choice.cluster_n;
    arguments.workspace = {workspace.partials, workspace.arrivals};
    launch.copy_count = 0;
    if (!kernel.copies) {
        repack_operands(launch, arguments, bytes, batches, workspace.copies);
    }

    const auto row_elements = static_cast<std::uint32_t>(128 / bytes);
    const auto encode_operand = [&](TmaMatrix matrix, bool k_major, std::uint32_t box, AnyTensorMap<3>& map,
                                    std::uint32_t matrices = 1) {
        if (gemm.k == 0) {
            // An operand that is not read needs a map nevertheless: of any memory, with an address and strides that TMA
            // accepts.
            matrix.data = std::bit_cast<const void*>(std::bit_cast<std::uintptr_t>(gemm.d) &
                                                     ~static_cast<std::uintptr_t>(tma_alignment - 1));
            matrix.run = 1;
            matrix.stride = tma_alignment;
            matrix.batch_stride = matrix.batched() ? tma_alignment : 0;
        }
        return encode_map(device, matrix,
                          {.run = row_elements, .lines = k_major ? box : row_elements, .matrices = matrices}, map);
    };
    arguments.c_batched = tma_c(gemm, batches).batched();
    const auto load_rows = [&](bool trims) {
        arguments.a_rows = loaded_rows(kernel.tile_m, gemm.m, trims && arguments.a_k_major && !arguments.a_by_threads);
        arguments.b_rows = loaded_rows(kernel.tile_n, gemm.n, trims && arguments.b_k_major && !arguments.b_by_threads);
    };
    // Slots with C lie over the rows that are not loaded, which the consumers clear while loads are in flight. So C goes
    // without TMA where the stages get a fifth smaller.
    load_rows(true);
    const auto tile_rows = static_cast<std::uint32_t>(kernel.tile_m + kernel.tile_n);
    const bool is_skinny = 5 * (arguments.a_rows + arguments.b_rows) <= 4 * tile_rows;
    const bool carries_c = !is_skinny && may_carry_c(gemm, kernel, batches, choice);
    load_rows(!carries_c);
    CallStatus ended;
    if (!arguments.a_by_threads) {
        ended = encode_operand(tma_a(gemm, arguments.a_k_major, batches), arguments.a_k_major,
                               arguments.a_rows / choice.cluster_n, arguments.a);
    }
    if (gemm.gating != Gating::none) {
        arguments.log2_columns_of_pair = 1;
        arguments.b_second_half =
            arguments.b_k_major ? 0
                                : static_cast<std::int32_t>(gemm.n / 2) - static_cast<std::int32_t>(kernel.tile_n / 2);
    }
    const bool takes_pairs_apart = gemm.gating != Gating::none && arguments.b_k_major;
    if (takes_pairs_apart) {
        arguments.b_rows = static_cast<std::uint32_t>(kernel.tile_n);
    }
    if (ended.status == cudaSuccess && takes_pairs_apart) {
        ended = encode_operand(tma_pairs_of_b(gemm), true, arguments.b_rows / 2, arguments.b, 2);
    } else if (ended.status == cudaSuccess && !arguments.b_by_threads) {
        ended = encode_operand(tma_b(gemm, arguments.b_k_major, batches), arguments.b_k_major,
                               arguments.b_rows / choice.cluster_m, arguments.b);
    }
    if (ended.status != cudaSuccess) {
        return ended;
    }

    const int cluster_size = choice.cluster_m * choice.cluster_n * choice.cluster_k;
    arguments.gemm.raster = raster_of(gemm, std::int64_t{kernel.tile_m} * choice.cluster_m,
                                      std::int64_t{kernel.tile_n} * choice.cluster_n, choice.band);
    arguments.work = work_of(kernel, gemm, batches, choice);
    encode_epilogue(arguments, device, kernel, batches, carries_c);
    const auto is_one_tile = [](std::int64_t extent, int tile, int tiles) {
        return extent <= std::int64_t{tile} * tiles;
    };
    arguments.a_read_once =
        is_one_tile(gemm.n, kernel.tile_n, choice.cluster_n) && (arguments.a_batched || batches == 1);
    arguments.b_read_once =
        is_one_tile(gemm.m, kernel.tile_m, choice.cluster_m) && (arguments.b_batched || batches == 1);
    arguments.prefetched_stages = prefetched_stages(arguments, arguments.work);

    launch.function = kernel.function;
    launch.ctas = static_cast<std::uint32_t>(choice.clusters * cluster_size);
    launch.threads = static_cast<std::uint32_t>(kernel.threads);
    launch.shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes);
    launch.cluster = static_cast<std::uint32_t>(cluster_size);
    launch.programmatic = true;
    return {};
}

CallStatus launch_hopper(StreamRef stream, const GemmProblem& problem, const KernelChoice& choice,
                         const kernels::GemmArguments& arguments, const WorkspaceMemory& workspace)
{
    EncodedLaunch launch;
    const CallStatus ended =
        encode_hopper(launch, problem, choice, Device(stream.device()).properties(), arguments, workspace);
    return ended.status == cudaSuccess ? enqueue(launch, stream) : ended;
}

}  // namespace tessera::detail
