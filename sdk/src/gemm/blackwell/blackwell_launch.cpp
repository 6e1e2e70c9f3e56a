#include "gemm/blackwell/blackwell_launch.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "matrix/encode_for_launch.hpp"

namespace tessera::detail {
namespace {

using kernels::BlackwellConfig;
using kernels::StagedOperand;

constexpr std::int64_t tma_alignment = 16;  // bytes; TMA's alignment of addresses and strides
// Coordinates are 32-bit, and tiles extend beyond the edge.
constexpr std::int64_t max_extent = 0x7FFFFFFF - 512;
constexpr std::int64_t max_stride = std::int64_t{1} << 40;  // bytes, exclusive: TMA's limit
constexpr std::int64_t max_ctas = 0x7FFFFFFF;
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

/// A matrix as TMA sees it: `batches` of `lines` runs of `run` elements, `stride` apart.
struct Lines {
    const void* data;
    std::int64_t element_bytes;
    std::int64_t run;
    std::int64_t lines;
    std::int64_t stride;
    std::int64_t batches;
    std::int64_t batch_stride;

    bool batched() const { return batches > 1 && batch_stride != 0; }

    bool tma_can_address() const
    {
        const auto fits = [&](std::int64_t elements) {
            return elements * element_bytes % tma_alignment == 0 && elements * element_bytes < max_stride;
        };
        return std::bit_cast<std::uintptr_t>(data) % tma_alignment == 0 && (lines <= 1 || fits(stride)) &&
               (!batched() || fits(batch_stride));
    }
};

int storage_type(std::int64_t element_bytes)
{
    switch (element_bytes) {
        case 1: return tensor_map_type<std::uint8_t>;
        case 2: return tensor_map_type<std::uint16_t>;
        default: return tensor_map_type<f32>;
    }
}

CallStatus encode(const DeviceProperties& device, const Lines& matrix, std::uint32_t box_run, std::uint32_t box_lines,
                  Swizzle swizzle, AnyTensorMap<3>& map)
{
    // A stride that is never used may be anything; the encoder wants a multiple of 16.
    const auto stride_bytes = [&](bool taken, std::int64_t elements) {
        return static_cast<std::uint64_t>(taken ? elements * matrix.element_bytes : tma_alignment);
    };
    TensorMapRequest request{};
    request.type = storage_type(matrix.element_bytes);
    request.element_bytes = static_cast<std::uint32_t>(matrix.element_bytes);
    request.rank = 3;
    request.data = matrix.data;
    request.extents = {static_cast<std::uint64_t>(matrix.run), static_cast<std::uint64_t>(matrix.lines),
                       static_cast<std::uint64_t>(matrix.batched() ? matrix.batches : 1)};
    request.strides = {stride_bytes(matrix.lines > 1, matrix.stride),
                       stride_bytes(matrix.batched(), matrix.batch_stride)};
    request.box = {box_run, box_lines, 1};
    request.swizzle = swizzle;
    request.out_of_bounds = OutOfBounds::zero;
    request.promotion = L2Promotion::b256;
    TensorMapBits bits{};
    const CallStatus ended = encode_for_launch(request, bits);
    mend_small_tensor_map(device, request, bits);  // which the driver gets wrong
    map = AnyTensorMap<3>::from_bits(bits);
    return ended;
}

/// Returns the layout of (rows, 128 bytes of K) of an operand in a stage.
TileLayout staged_layout(Major major, std::uint32_t rows, std::uint32_t element_bytes, bool swizzled)
{
    Swizzle swizzle = swizzled ? Swizzle::b128 : Swizzle::none;
    if (major == Major::mn && element_bytes == 4) {
        swizzle = Swizzle::b128_atom_32b;  // the only swizzle with which the tensor core reads this order
    } else if (swizzled && major == Major::mn && rows * element_bytes < span_bytes) {
        swizzle = Swizzle::b64;  // 64 rows of 8 bits are no wider
    }
    return {major, swizzle, rows, span_bytes / element_bytes, element_bytes};
}

/// Fills in everything except the map. @param shares  CTAs that load a part of the boxes each
StagedOperand staged_operand(const TileLayout& layout, std::uint32_t shares)
{
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
    return operand;
}

CallStatus encode_operand(const DeviceProperties& device, const Lines& matrix, StagedOperand& operand)
{
    const TileLayout& layout = operand.layout;
    const std::uint32_t in_span = layout.span() / layout.element_bytes;
    return encode(device, matrix, in_span, operand.box_bytes / layout.span(), layout.swizzle, operand.map);
}

Lines lines_of(const kernels::Operand& operand, Major major, std::int64_t rows, std::int64_t k, std::int64_t batches,
               std::int64_t row_stride, std::int64_t k_stride, ElementType type)
{
    const bool k_major = major == Major::k;
    return {operand.data,        static_cast<std::int64_t>(size_of(type)), k_major ? k : rows,
            k_major ? rows : k,  k_major ? row_stride : k_stride,          batches,
            operand.batch_stride};
}

struct Matrices {
    Lines a;
    Lines b;
    Lines c;
    Lines d;
    Major a_major;
    Major b_major;
};

Matrices matrices_of(const kernels::GemmArguments& gemm, std::int64_t batches)
{
    Matrices all{};
    all.a_major = gemm.a.column_stride == 1 ? Major::k : Major::mn;
    all.b_major = gemm.b.row_stride == 1 ? Major::k : Major::mn;
    all.a =
        lines_of(gemm.a, all.a_major, gemm.m, gemm.k, batches, gemm.a.row_stride, gemm.a.column_stride, gemm.a_type);
    all.b =
        lines_of(gemm.b, all.b_major, gemm.n, gemm.k, batches, gemm.b.column_stride, gemm.b.row_stride, gemm.b_type);
    const auto output_bytes = static_cast<std::int64_t>(size_of(gemm.d_type));
    all.c = {
        gemm.c.data,        static_cast<std::int64_t>(size_of(gemm.c_type)), gemm.n, gemm.m, gemm.c.row_stride, batches,
        gemm.c.batch_stride};
    all.d = {gemm.d, output_bytes, gemm.n, gemm.m, gemm.d_row_stride, batches, gemm.d_batch_stride};
    return all;
}

/// Returns the height of a raster group, in tiles. Clusters that run at the same time then cover roughly a square of D,
/// which reads the least of A and B.
std::uint32_t band_of(const BlackwellConfig& config, int sm_count)
{
    const double clusters = static_cast<double>(sm_count) / config.cluster;
    return static_cast<std::uint32_t>(
        std::max(1.0, std::round(std::sqrt(clusters * config.block_n / config.cluster_m()))));
}

std::int64_t units_of(const BlackwellConfig& config, std::int64_t m, std::int64_t n, std::int64_t batches)
{
    std::int64_t units = 0;
    if (__builtin_mul_overflow(divide_up(m, config.cluster_m()), divide_up(n, config.block_n), &units) ||
        __builtin_mul_overflow(units, batches, &units)) {
        return max_ctas;
    }
    return units;
}

}  // namespace

std::optional<Refusal> find_blackwell_refusal(Variant variant, const GemmProblem& problem,
                                              const DeviceProperties& device)
{
    using Reason = Refusal::Reason;
    if (device.compute_capability_major != blackwell_compute_capability / 10) {
        return Refusal{.reason = Reason::architecture, .needs = "is for 10.0 and 10.3 only"};
    }
    if (problem.input == InputTypes(ElementType::f32)) {
        return Refusal{Reason::needs_tf32};
    }
    if (kernels::blackwell_kernel(blackwell_rung(variant), kind_of(problem.input.a)).function == nullptr) {
        return Refusal{Reason::not_built, ' ', 0, blackwell_compute_capability};
    }
    if (const std::int64_t largest = std::max({problem.m, problem.n, problem.k, problem.batches});
        largest > max_extent) {
        return Refusal{Reason::grid_size, ' ', largest, max_extent};
    }
    const BlackwellConfig& config = kernels::blackwell_config(blackwell_rung(variant));
    const std::int64_t rows = problem.d.row_major ? problem.m : problem.n;
    const std::int64_t columns = problem.d.row_major ? problem.n : problem.m;
    if (const std::int64_t units = units_of(config, rows, columns, problem.batches);
        units > max_ctas / config.cluster) {
        return Refusal{Reason::grid_size, ' ', units, max_ctas / config.cluster};
    }
    return std::nullopt;
}

kernels::BlackwellArguments blackwell_arguments(kernels::BlackwellRung rung, const kernels::GemmArguments& gemm,
                                                std::int64_t batches, int sm_count)
{
    const BlackwellConfig& config = kernels::blackwell_config(rung);
    const Matrices matrices = matrices_of(gemm, batches);
    const auto element_bytes = static_cast<std::uint32_t>(size_of(gemm.a_type));

    kernels::BlackwellArguments arguments{};
    arguments.gemm = gemm;
    arguments.a = staged_operand(staged_layout(matrices.a_major, 128, element_bytes, config.swizzled), 1);
    arguments.b = staged_operand(staged_layout(matrices.b_major, config.b_rows(), element_bytes, config.swizzled),
                                 config.multicast ? config.cluster : 1);
    arguments.a.batched = matrices.a.batched();
    arguments.b.batched = matrices.b.batched();
    arguments.a.by_threads = gemm.k > 0 && !matrices.a.tma_can_address();
    arguments.b.by_threads = gemm.k > 0 && !matrices.b.tma_can_address();
    arguments.copies = arguments.a.by_threads || arguments.b.by_threads;
    arguments.c_batched = matrices.c.batched();
    // Whole chunks of 16 bytes: if a row of D ended inside a chunk, TMA would overwrite the elements after it.
    const bool whole_chunks = gemm.n * static_cast<std::int64_t>(size_of(gemm.d_type)) % 16 == 0;
    // An 8-bit D has a C of another width, and is stored by the threads.
    arguments.stores_by_tma = !is_float8(gemm.d_type) && gemm.d_column_stride == 1 && whole_chunks &&
                              matrices.d.tma_can_address() &&
                              (gemm.beta == 0 || (gemm.c.column_stride == 1 && matrices.c.tma_can_address()));
    arguments.block_k = span_bytes / element_bytes;
    arguments.k_steps = static_cast<std::uint32_t>(divide_up(gemm.k, arguments.block_k));
    arguments.units = static_cast<std::uint32_t>(units_of(config, gemm.m, gemm.n, batches));
    arguments.band = band_of(config, sm_count);

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

CallStatus encode_blackwell(EncodedLaunch& launch, const GemmProblem& problem, Variant variant,
                            const kernels::GemmArguments& gemm, const DeviceProperties& device)
{
    const kernels::BlackwellRung rung = blackwell_rung(variant);
    const BlackwellConfig& config = kernels::blackwell_config(rung);
    const kernels::BlackwellKernel kernel = kernels::blackwell_kernel(rung, kind_of(gemm.a_type));
    auto& arguments = launch.emplace_arguments<kernels::BlackwellArguments>();
    arguments = blackwell_arguments(rung, gemm, problem.batches, device.sm_count);
    const Matrices matrices = matrices_of(gemm, problem.batches);

    const auto output_run = static_cast<std::uint32_t>(span_bytes / size_of(gemm.d_type));
    CallStatus ended;
    const auto take = [&](bool needed, auto&& encoding) {
        if (needed && ended.status == cudaSuccess) {
            ended = encoding();
        }
    };
    take(gemm.k > 0 && !arguments.a.by_threads, [&] { return encode_operand(device, matrices.a, arguments.a); });
    take(gemm.k > 0 && !arguments.b.by_threads, [&] { return encode_operand(device, matrices.b, arguments.b); });
    take(arguments.stores_by_tma,
         [&] { return encode(device, matrices.d, output_run, 32, Swizzle::b128, arguments.d); });
    take(arguments.stores_by_tma && gemm.beta != 0,
         [&] { return encode(device, matrices.c, output_run, 32, Swizzle::b128, arguments.c); });
    if (ended.status != cudaSuccess) {
        return ended;
    }

    const std::uint32_t clusters =
        config.scheduling == kernels::Scheduling::static_persistent
            ? std::min(arguments.units, static_cast<std::uint32_t>(device.sm_count) / config.cluster)
            : arguments.units;
    launch.function = kernel.function;
    launch.ctas = clusters * config.cluster;
    launch.threads = static_cast<std::uint32_t>(arguments.copies ? kernel.copying_threads : kernel.threads);
    launch.shared_bytes = static_cast<std::uint32_t>(kernel.shared_bytes);
    launch.cluster = config.cluster;
    launch.programmatic = true;
    launch.copy_count = 0;
    return {};
}

}  // namespace tessera::detail
