#include "gemm/blackwell/blackwell_launch.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "gemm/gemm_operands.hpp"
#include "gemm/tma_matrix.hpp"
#include "tessera/device/instruction_descriptor.hpp"

namespace tessera::detail {
namespace {

using kernels::BlackwellConfig;
using kernels::StagedOperand;

constexpr std::int64_t max_ctas = 0x7FFFFFFF;
constexpr std::int64_t max_shared_stages = 0x7FFFFFFF;  // the kernel counts them in 31 bits
constexpr std::uint32_t span_bytes = BlackwellConfig::stage_row_bytes;

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

OperandType operand_type(ElementType type)
{
    switch (type) {
        case ElementType::f16: return OperandType::f16;
        case ElementType::bf16: return OperandType::bf16;
        case ElementType::f8e4m3: return OperandType::e4m3;
        case ElementType::f8e5m2: return OperandType::e5m2;
        default: return OperandType::tf32;
    }
}

MmaKind kind_of(ElementType type)
{
    switch (size_of(type)) {
        case 1: return MmaKind::f8f6f4;
        case 2: return MmaKind::f16;
        default: return MmaKind::tf32;
    }
}

/// Returns the layout of (rows, 128 bytes of K) of an operand in a stage.
TileLayout staged_layout(Major major, std::uint32_t rows, std::uint32_t element_bytes, bool swizzled)
{
    Swizzle swizzle = swizzled ? Swizzle::b128 : Swizzle::none;
    if (major == Major::mn && element_bytes == 4) {
        swizzle = Swizzle::b128_atom_32b;  // the only swizzle with which the tensor core reads this order
    } else if (swizzled && major == Major::mn) {
        // The widest span that divides the rows.
        const std::uint32_t row_bytes = rows * element_bytes;
        swizzle = row_bytes % 128 == 0  ? Swizzle::b128
                  : row_bytes % 64 == 0 ? Swizzle::b64
                  : row_bytes % 32 == 0 ? Swizzle::b32
                                        : Swizzle::none;
    }
    return {major, swizzle, rows, span_bytes / element_bytes, element_bytes};
}

/// Fills in everything except the map.
/// @param extent  rows of the operand. If it has fewer than the part, no more are loaded, because zeros cost as much time as
///                data; rounded up to eight, the rows of a swizzle atom.
/// @param shares  CTAs that load a part of the boxes each
StagedOperand staged_operand(const TileLayout& layout, std::int64_t extent, std::uint32_t shares)
{
    constexpr std::int64_t atom_rows = 8;
    StagedOperand operand{};
    operand.layout = layout;
    operand.descriptor = tcgen05_descriptor(layout, 0).bits();
    operand.descriptor_step = layout.k_offset(32 / layout.element_bytes) / 16;
    const std::uint32_t in_span = layout.span() / layout.element_bytes;
    if (layout.major == Major::k) {
        operand.boxes = layout.k / in_span * shares;
        operand.box_rows = static_cast<std::int32_t>(shares > 1 ? layout.rows / shares : 0);
        operand.box_k = static_cast<std::int32_t>(shares > 1 ? 0 : in_span);
    } else {
        const std::uint32_t blocks = layout.rows / in_span;
        operand.boxes = std::max(blocks, shares);
        operand.box_rows = static_cast<std::int32_t>(blocks >= shares ? in_span : 0);
        operand.box_k = static_cast<std::int32_t>(blocks >= shares ? 0 : layout.k / shares);
    }
    operand.box_bytes = layout.bytes() / operand.boxes;
    operand.box_lines = operand.box_bytes / layout.span();
    if (layout.major == Major::k && operand.boxes == 1) {
        const std::int64_t needed = divide_up(std::max<std::int64_t>(extent, 1), atom_rows) * atom_rows;
        operand.box_lines = static_cast<std::uint32_t>(std::min<std::int64_t>(operand.box_lines, needed));
    }
    operand.loaded_bytes = operand.boxes * operand.box_lines * layout.span();
    return operand;
}

CallStatus encode_operand(const DeviceProperties& device, const TmaMatrix& matrix, StagedOperand& operand)
{
    const TileLayout& layout = operand.layout;
    return encode_map(
        device, matrix,
        {.run = layout.span() / layout.element_bytes, .lines = operand.box_lines, .swizzle = layout.swizzle},
        operand.map);
}

struct Matrices {
    Major a_major;
    Major b_major;
    TmaMatrix a;
    TmaMatrix b;
    TmaMatrix c;
    TmaMatrix d;
};

Matrices matrices_of(const kernels::GemmArguments& gemm, std::int64_t batches)
{
    const Major a_major = gemm.a.column_stride == 1 ? Major::k : Major::mn;
    const Major b_major = gemm.b.row_stride == 1 ? Major::k : Major::mn;
    return {.a_major = a_major,
            .b_major = b_major,
            .a = tma_a(gemm, a_major == Major::k, batches),
            .b = tma_b(gemm, b_major == Major::k, batches),
            .c = tma_c(gemm, batches),
            .d = tma_d(gemm, batches)};
}

/// Returns how many stages each CTA prefetches into L2 while it waits for the previous kernel: as on Hopper, where this was
/// measured. Products that read both operands more than once gain nothing.
std::uint32_t prefetched_stages(const kernels::BlackwellArguments& arguments)
{
    constexpr std::uint32_t smallest_part = 4;  // of K
    constexpr std::int64_t memory_bound_rows = 64;
    if (arguments.k_steps == 0 || (!arguments.a.read_once && !arguments.b.read_once)) {
        return 0;
    }
    const std::uint32_t most = std::min(arguments.gemm.m, arguments.gemm.n) <= memory_bound_rows ? 8 : 4;
    return std::clamp<std::uint32_t>(arguments.k_steps / smallest_part, 1, most);
}

/// Returns all kernel parameters except tensor maps, which need a driver.
kernels::BlackwellArguments arguments_of(const BlackwellConfig& config, const kernels::GemmArguments& gemm,
                                         const Matrices& matrices, std::int64_t batches, std::uint8_t band)
{
    const auto element_bytes = static_cast<std::uint32_t>(size_of(gemm.a_type));
    kernels::BlackwellArguments arguments{};
    arguments.gemm = gemm;
    const bool trims = config.group == CtaGroup::one;
    const auto loaded = [&](std::int64_t extent) { return trims ? extent : tma_extent_limit; };
    arguments.a =
        staged_operand(staged_layout(matrices.a_major, 128, element_bytes, config.swizzled), loaded(gemm.m), 1);
    arguments.b = staged_operand(staged_layout(matrices.b_major, config.b_rows(), element_bytes, config.swizzled),
                                 loaded(gemm.n), config.b_sharers());
    arguments.a.batched = matrices.a.batched();
    arguments.b.batched = matrices.b.batched();
    arguments.a.by_threads = gemm.k > 0 && !matrices.a.is_addressable();
    arguments.b.by_threads = gemm.k > 0 && !matrices.b.is_addressable();
    arguments.c_batched = matrices.c.batched();
    // An 8-bit D has a C of another width, and is stored by the threads.
    arguments.stores_by_tma = !is_float8(gemm.d_type) && matrices.d.is_addressable() && matrices.d.has_whole_chunks() &&
                              (gemm.beta == 0 || matrices.c.is_addressable());
    arguments.block_k = span_bytes / element_bytes;
    arguments.k_steps = static_cast<std::uint32_t>(divide_up(gemm.k, arguments.block_k));
    arguments.units = static_cast<std::uint32_t>(
        blackwell_units(config, {.m = gemm.m, .n = gemm.n, .k = gemm.k, .batches = batches, .copies = false}));
    arguments.gemm.raster = raster_of(gemm, config.cluster_m(), config.block_n, band);
    // An operand is read once if the other one has a single tile.
    arguments.a.read_once = gemm.n <= config.block_n && (arguments.a.batched || batches == 1);
    arguments.b.read_once = gemm.m <= config.cluster_m() && (arguments.b.batched || batches == 1);
    arguments.prefetched_stages = prefetched_stages(arguments);

    MmaSpec spec;
    spec.kind = kind_of(gemm.a_type);
    spec.group = config.group;
    spec.m = config.instruction_m();
    spec.n = config.block_n;
    spec.a = operand_type(gemm.a_type);
    spec.b = operand_type(gemm.b_type);
    spec.a_major = matrices.a_major;
    spec.b_major = matrices.b_major;
    arguments.instruction = instruction_bits(spec);
    return arguments;
}

CallStatus encode_kernel(EncodedLaunch& launch, const GemmProblem& problem, const kernels::BlackwellKernel& kernel,
                         const KernelChoice& choice, const kernels::GemmArguments& given,
                         const DeviceProperties& device, const WorkspaceMemory& workspace)
{
    const BlackwellConfig& config = *kernel.config;
    const kernels::GemmArguments gemm = choice.swapped ? transposed(given) : given;
    const Matrices matrices = matrices_of(gemm, problem.batches);
    auto& arguments = launch.emplace_arguments<kernels::BlackwellArguments>();
    arguments = arguments_of(config, gemm, matrices, problem.batches, choice.band);
    arguments.stream_k = choice.stream_k && arguments.k_steps > 0;
    if (arguments.stream_k) {
        arguments.split = StreamKSplit(arguments.units, arguments.k_steps, choice.clusters);
        arguments.workspace = {workspace.partials, workspace.arrivals};
    }
    if (!config.copies && (arguments.a.by_threads || arguments.b.by_threads)) {
        return {cudaErrorMisalignedAddress, "choosing a configuration without the fallback load"};
    }

    const auto d_bytes = static_cast<std::uint32_t>(size_of(gemm.d_type));
    TmaBox output_box{.run = config.store_columns(std::max(d_bytes, 2U)), .lines = 32};
    output_box.swizzle = output_box.run * d_bytes == 128  ? Swizzle::b128
                         : output_box.run * d_bytes == 64 ? Swizzle::b64
                                                          : Swizzle::b32;
    CallStatus ended;
    const auto take = [&](bool needed, auto&& encoding) {
        if (needed && ended.status == cudaSuccess) {
            ended = encoding();
        }
    };
    take(gemm.k > 0 && !arguments.a.by_threads, [&] { return encode_operand(device, matrices.a, arguments.a); });
    take(gemm.k > 0 && !arguments.b.by_threads, [&] { return encode_operand(device, matrices.b, arguments.b); });
    take(arguments.stores_by_tma, [&] { return encode_map(device, matrices.d, output_box, arguments.d); });
    take(arguments.stores_by_tma && gemm.beta != 0,
         [&] { return encode_map(device, matrices.c, output_box, arguments.c); });
    if (ended.status != cudaSuccess) {
        return ended;
    }

    const std::uint32_t clusters =
        arguments.stream_k ? choice.clusters
        : config.scheduling == kernels::Scheduling::static_persistent
            ? std::min(arguments.units, static_cast<std::uint32_t>(blackwell_cluster_slots(device, config.cluster)))
            : arguments.units;
    launch.function = kernel.function;
    launch.ctas = clusters * config.cluster;
    launch.threads = config.threads();
    launch.shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes);
    launch.cluster = config.cluster;
    launch.programmatic = true;
    launch.copy_count = 0;
    return {};
}

}  // namespace

std::uint8_t blackwell_band(const BlackwellConfig& config, int sm_count)
{
    const double clusters = static_cast<double>(sm_count) / config.cluster;
    return static_cast<std::uint8_t>(
        std::clamp(std::round(std::sqrt(clusters * config.block_n / config.cluster_m())), 1.0, 255.0));
}

BlackwellShape blackwell_shape(const GemmProblem& problem, bool swapped)
{
    const std::size_t bytes = size_of(problem.input);
    const bool loads_a = tma_can_load(problem.a, bytes, problem.a.row_major ? problem.m : problem.k, problem.batches);
    const bool loads_b = tma_can_load(problem.b, bytes, problem.b.row_major ? problem.k : problem.n, problem.batches);
    BlackwellShape shape{.m = problem.m,
                         .n = problem.n,
                         .k = problem.k,
                         .batches = problem.batches,
                         .copies = problem.k > 0 && !(loads_a && loads_b)};
    if (swapped != is_transposed(problem)) {
        std::swap(shape.m, shape.n);
    }
    return shape;
}

std::int64_t blackwell_cluster_slots(const DeviceProperties& device, std::uint32_t cluster)
{
    // A cluster is inside of one GPC, whose SMs need be no multiple of four. 18 is an assumption: a B200's 148 SMs are in eight GPCs,
    // and how many are in each was not measured.
    constexpr std::int64_t sms_of_gpc = 18;
    const std::int64_t of_all = device.sm_count;
    return cluster <= 2 ? of_all / cluster
                        : of_all / sms_of_gpc * (sms_of_gpc / cluster) + of_all % sms_of_gpc / cluster;
}

std::int64_t blackwell_units(const BlackwellConfig& config, const BlackwellShape& shape)
{
    std::int64_t units = 0;
    if (__builtin_mul_overflow(divide_up(shape.m, config.cluster_m()), divide_up(shape.n, config.block_n), &units) ||
        __builtin_mul_overflow(units, shape.batches, &units)) {
        return max_ctas;
    }
    return units;
}

std::optional<Refusal> find_blackwell_refusal(const GemmProblem& problem, const DeviceProperties& device)
{
    using Reason = Refusal::Reason;
    if (!has_tensor_memory(device)) {
        return Refusal{.reason = Reason::architecture, .needs = "is for 10.0, 10.3 and 11.0 only"};
    }
    if (problem.input == InputTypes(ElementType::f32)) {
        return Refusal{Reason::needs_tf32};
    }
    if (problem.gating != Gating::none) {
        return Refusal{Reason::gated_pairs};
    }
    if (!kernels::has_blackwell_code(device.compute_capability_major)) {
        return Refusal{Reason::not_built, ' ', 0,
                       10 * device.compute_capability_major + device.compute_capability_minor};
    }
    if (const std::int64_t largest = std::max({problem.m, problem.n, problem.k, problem.batches});
        largest > tma_extent_limit) {
        return Refusal{Reason::grid_size, ' ', largest, tma_extent_limit};
    }
    // The largest tile makes the smallest grid. Every problem has one of these two.
    const BlackwellConfig& largest_tile =
        blackwell_shape(problem, false).copies ? kernels::CopyingPair256x256::config : kernels::Pair512x256::config;
    if (const std::int64_t units = blackwell_units(largest_tile, blackwell_shape(problem, false));
        units > max_ctas / largest_tile.cluster) {
        return Refusal{Reason::grid_size, ' ', units, max_ctas / largest_tile.cluster};
    }
    return std::nullopt;
}

bool is_blackwell_choice_valid(const GemmProblem& problem, const KernelChoice& choice)
{
    const auto table = kernels::blackwell_kernels(size_of(problem.input));
    if (choice.config >= table.size() || choice.band == 0) {
        return false;
    }
    const BlackwellConfig& config = *table[choice.config].config;
    const BlackwellShape shape = blackwell_shape(problem, choice.swapped);
    const std::int64_t units = blackwell_units(config, shape);
    const std::int64_t stages = blackwell_stages(problem);
    // A tile's sharers are all clusters from its first to its last: each must have a stage.
    const bool shares = !choice.stream_k || (config.shares_tiles() && choice.clusters > 0 && units > 0 && stages > 0 &&
                                             units <= max_shared_stages / stages && choice.clusters <= units * stages);
    return config.copies == shape.copies && units <= max_ctas / config.cluster && shares;
}

std::int64_t blackwell_stages(const GemmProblem& problem)
{
    return divide_up(problem.k * static_cast<std::int64_t>(size_of(problem.input)), span_bytes);
}

WorkspaceNeed blackwell_workspace(const GemmProblem& problem, const KernelChoice& choice)
{
    WorkspaceNeed need;
    if (choice.stream_k) {
        const BlackwellConfig& config = *kernels::blackwell_kernels(size_of(problem.input))[choice.config].config;
        need.partial_bytes = std::size_t{2} * choice.clusters * config.partial_floats() * sizeof(float);
        need.counters = std::size_t{choice.clusters} * config.partial_counters();
    }
    return need;
}

CallStatus encode_blackwell(EncodedLaunch& launch, const GemmProblem& problem, const KernelChoice& choice,
                            const kernels::GemmArguments& gemm, const DeviceProperties& device,
                            const WorkspaceMemory& workspace)
{
    const kernels::BlackwellKernel& kernel = kernels::blackwell_kernels(size_of(problem.input))[choice.config];
    return encode_kernel(launch, problem, kernel, choice, gemm, device, workspace);
}

CallStatus launch_blackwell(StreamRef stream, const GemmProblem& problem, const kernels::BlackwellKernel& kernel,
                            const KernelChoice& choice, const kernels::GemmArguments& arguments,
                            const WorkspaceMemory& workspace)
{
    EncodedLaunch launch;
    const CallStatus ended =
        encode_kernel(launch, problem, kernel, choice, arguments, Device(stream.device()).properties(), workspace);
    return ended.status == cudaSuccess ? enqueue(launch, stream) : ended;
}

}  // namespace tessera::detail
