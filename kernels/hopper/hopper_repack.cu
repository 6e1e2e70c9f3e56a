/// The repacking kernel: copies or transposes one or two operands into aligned matrices. See hopper_repack.hpp.
///
/// All 128 threads of a CTA do the same. The kernel is bound by memory: a thread keeps eight chunks of 16 bytes in
/// flight, assembles each from aligned words and stores it aligned. Transposing goes through shared memory.

#include "hopper_repack.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include "hopper_shared.cuh"
#include "kernels/gemm/unaligned_copy.cuh"
#include "transposing_copy.cuh"

namespace tessera::kernels {
namespace {

constexpr int threads = 128;
constexpr int chunk_bytes = 16;
constexpr int chunks_in_flight = 8;    // per thread
constexpr int transposed_bytes = 128;  // bytes per line of a transposed tile in the copy
constexpr std::int64_t max_grid = std::numeric_limits<std::int32_t>::max();

/// Lines of a transposed tile in the copy. A tile reads as many elements of a source line: 256 bytes or more.
template <int ElementBytes>
constexpr int transposed_lines = ElementBytes == 1 ? 256 : 128;

/// One operand, and how it is cut into pieces, one per CTA.
struct Part {
    Repacking operand;
    std::uint32_t along;             // CTAs per line
    std::uint32_t per_matrix;        // CTAs per matrix
    std::uint32_t chunk_lanes_log2;  // log2 of the neighbouring threads that copy neighbouring chunks of one line
};

struct RepackArguments {
    Part parts[2];
    std::uint32_t first_ctas;  // CTAs of the first part
};

/// One CTA's piece of a part.
struct Piece {
    const std::byte* source;  // start of the piece's matrix
    std::byte* copy;          // start of the matrix's copy
    std::int64_t across;      // index of the piece across the lines
    std::int64_t along;       // index of the piece along the lines

    __device__ Piece(const Part& part, std::uint32_t cta)
    {
        const std::uint32_t matrix = cta / part.per_matrix;
        const std::uint32_t place = cta % part.per_matrix;
        source = part.operand.source + matrix * part.operand.source_batch_stride;
        copy = part.operand.copy + matrix * part.operand.copy_batch_stride;
        across = place / part.along;
        along = place % part.along;
    }
};

/// Each thread copies the same chunk of several lines.
template <int ElementBytes>
__device__ void copy_lines(const Part& part, const Piece& piece)
{
    constexpr int in_chunk = chunk_bytes / ElementBytes;
    constexpr int gathered_at_once = ElementBytes == 1 ? 2 : 4;
    const Repacking& operand = part.operand;
    const int lanes_log2 = static_cast<int>(part.chunk_lanes_log2);
    const int thread = static_cast<int>(threadIdx.x);
    const int lines_at_once = threads >> lanes_log2;
    const std::int64_t chunk = (piece.along << lanes_log2) + (thread & ((1 << lanes_log2) - 1));
    const std::int64_t line = piece.across * lines_at_once * chunks_in_flight + (thread >> lanes_log2);
    const std::int64_t left = operand.run - chunk * in_chunk;  // elements of the line from the chunk on
    if (left <= 0) {
        return;
    }
    const int lines = static_cast<int>(min(operand.lines - line, std::int64_t{lines_at_once} * chunks_in_flight));
    const auto is_line = [&](int step) { return step * lines_at_once < lines; };
    const std::byte* const source = piece.source + line * operand.source_stride + chunk * chunk_bytes;
    const std::int64_t source_step = lines_at_once * operand.source_stride;
    std::byte* const copy = piece.copy + line * operand.copy_stride + chunk * chunk_bytes;
    const std::int64_t copy_step = lines_at_once * operand.copy_stride;
    const auto from = [&](int step) { return source + step * source_step; };
    const auto put = [&](int step, const uint4& value) { *reinterpret_cast<uint4*>(copy + step * copy_step) = value; };

    if (chunk > 0 && left >= 2 * in_chunk) {  // both words that cover a chunk are inside its line
        const auto misalignment = [&](int step) {
            return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(from(step))) & (chunk_bytes - 1U);
        };
        detail::CoveringWords words[chunks_in_flight];
#pragma unroll
        for (int step = 0; step < chunks_in_flight; ++step) {
            const auto* const aligned = reinterpret_cast<const uint4*>(from(step) - misalignment(step));
            words[step] = is_line(step) ? detail::CoveringWords{aligned[0], aligned[1]} : detail::CoveringWords{};
        }
#pragma unroll
        for (int step = 0; step < chunks_in_flight; ++step) {
            if (is_line(step)) {
                put(step, detail::shifted<ElementBytes>(words[step], misalignment(step)));
            }
        }
        return;
    }
#pragma unroll 1
    for (int begin = 0; begin < chunks_in_flight; begin += gathered_at_once) {
        uint4 values[gathered_at_once];
#pragma unroll
        for (int i = 0; i < gathered_at_once; ++i) {
            const std::int64_t count = is_line(begin + i) ? min(left, std::int64_t{in_chunk}) : 0;
            values[i] = detail::gathered<ElementBytes>(from(begin + i), static_cast<int>(count));
        }
#pragma unroll
        for (int i = 0; i < gathered_at_once; ++i) {
            if (is_line(begin + i)) {
                put(begin + i, values[i]);
            }
        }
    }
}

/// Transposes one tile of (lines, 128 bytes) of the copy.
template <int ElementBytes>
__device__ void transpose(const Part& part, const Piece& piece)
{
    constexpr int lines = transposed_lines<ElementBytes>;
    constexpr int chunks = transposed_bytes / chunk_bytes;
    constexpr int lines_at_once = threads / chunks;
    __shared__ alignas(1024) std::byte tile[lines * transposed_bytes];
    const Repacking& operand = part.operand;
    const auto first_element = static_cast<int>(piece.across * (transposed_bytes / ElementBytes));
    const auto first_line = static_cast<int>(piece.along * lines);
    TransposingCopier<ElementBytes, lines> copier(threadIdx.x);
    copier.begin({.data = piece.source,
                  .stride = operand.source_stride,
                  .lines = static_cast<int>(operand.lines),
                  .run = static_cast<int>(operand.run)},
                 first_line, first_element);
    copier.copy(tile);
    __syncthreads();
    const int chunk = static_cast<int>(threadIdx.x) % chunks;
    const std::int64_t offset = piece.across * transposed_bytes + chunk * chunk_bytes;
    if (offset >= operand.lines * ElementBytes) {
        return;
    }
#pragma unroll 4
    for (int line = static_cast<int>(threadIdx.x) / chunks; line < lines; line += lines_at_once) {
        if (first_line + line < operand.run) {
            const std::uint32_t place =
                swizzled(Swizzle::b128, static_cast<std::uint32_t>(line * transposed_bytes + chunk * chunk_bytes));
            *reinterpret_cast<uint4*>(piece.copy + (std::int64_t{first_line} + line) * operand.copy_stride + offset) =
                *reinterpret_cast<const uint4*>(tile + place);
        }
    }
}

template <int ElementBytes>
__global__ void __launch_bounds__(threads) repack_operands(const __grid_constant__ RepackArguments arguments)
{
    const bool second = blockIdx.x >= arguments.first_ctas;
    const Part& part = arguments.parts[second ? 1 : 0];
    const Piece piece(part, blockIdx.x - (second ? arguments.first_ctas : 0));
    await_kernel_before();
    if constexpr (ElementBytes != 2) {
        if (part.operand.transposes) {
            transpose<ElementBytes>(part, piece);
            return;
        }
    }
    copy_lines<ElementBytes>(part, piece);
}

constexpr std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

/// Cuts the operand into pieces. @return the number of CTAs
template <int ElementBytes>
std::int64_t cut(const Repacking& operand, Part& part)
{
    std::int64_t along = 0;
    std::int64_t across = 0;
    part.operand = operand;
    if (operand.transposes) {
        along = divide_up(operand.run, transposed_lines<ElementBytes>);
        across = divide_up(operand.lines * ElementBytes, transposed_bytes);
    } else {
        const std::int64_t chunks = divide_up(operand.run * ElementBytes, chunk_bytes);
        const auto lanes = std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(chunks, threads)));
        part.chunk_lanes_log2 = static_cast<std::uint32_t>(std::countr_zero(lanes));
        along = divide_up(chunks, static_cast<std::int64_t>(lanes));
        across = divide_up(operand.lines, threads / static_cast<std::int64_t>(lanes) * chunks_in_flight);
    }
    part.along = static_cast<std::uint32_t>(along);
    part.per_matrix = static_cast<std::uint32_t>(along * across);
    return along * across;
}

template <int ElementBytes>
cudaError_t launch_repack(std::span<const Repacking> operands, cudaStream_t stream)
{
    RepackArguments arguments{};
    std::int64_t ctas = 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
        const std::int64_t per_matrix = cut<ElementBytes>(operands[i], arguments.parts[i]);
        if (per_matrix > max_grid || per_matrix * operands[i].batches > max_grid - ctas) {
            return cudaErrorInvalidConfiguration;  // a terabyte or more
        }
        ctas += per_matrix * operands[i].batches;
        arguments.first_ctas = i == 0 ? static_cast<std::uint32_t>(ctas) : arguments.first_ctas;
    }
    cudaLaunchAttribute starts_early{};
    starts_early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    starts_early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(static_cast<unsigned>(ctas));
    config.blockDim = dim3(threads);
    config.stream = stream;
    config.attrs = &starts_early;
    config.numAttrs = 1;
    return cudaLaunchKernelEx(&config, repack_operands<ElementBytes>, arguments);
}

}  // namespace

cudaError_t repack(std::span<const Repacking> operands, std::size_t element_bytes, cudaStream_t stream)
{
    switch (element_bytes) {
        case 1: return launch_repack<1>(operands, stream);
        case 2: return launch_repack<2>(operands, stream);
        case 4: return launch_repack<4>(operands, stream);
        default: return cudaErrorInvalidValue;
    }
}

}  // namespace tessera::kernels
