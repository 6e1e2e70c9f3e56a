#include "gemm/hopper/hopper_repack.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "gemm/hopper/hopper_launch.hpp"
#include "kernels/hopper/hopper_repack.hpp"

namespace tessera::detail {
namespace {

constexpr std::size_t uncountable = std::numeric_limits<std::size_t>::max();

/// Bytes from one line of a copy to the next.
std::int64_t copied_line(std::int64_t elements, std::size_t element_bytes)
{
    constexpr std::int64_t unit = kernels::repacked_line_alignment;
    return (elements * static_cast<std::int64_t>(element_bytes) + unit - 1) / unit * unit;
}

/// The tensor core reads 16-bit operands in either major, all others K-major.
bool is_copy_k_major(bool k_major, std::size_t element_bytes) { return k_major || element_bytes != 2; }

std::size_t product(std::size_t a, std::size_t b) { return b != 0 && a > uncountable / b ? uncountable : a * b; }
std::size_t sum(std::size_t a, std::size_t b) { return a > uncountable - b ? uncountable : a + b; }

}  // namespace

std::size_t repacked_bytes(const GemmProblem& problem) noexcept
{
    const std::size_t element_bytes = size_of(problem.input);
    const auto bytes = [&](std::int64_t rows, bool k_major, const MatrixLayout& layout) {
        const bool by_lines_along_k = is_copy_k_major(k_major, element_bytes);
        const std::int64_t lines = by_lines_along_k ? rows : problem.k;
        const std::int64_t line = copied_line(by_lines_along_k ? problem.k : rows, element_bytes);
        const std::int64_t matrices = layout.batch_stride == 0 ? 1 : problem.batches;
        return product(product(static_cast<std::size_t>(lines), static_cast<std::size_t>(line)),
                       static_cast<std::size_t>(matrices));
    };
    // The operands as given, before a column-major D exchanges them.
    const HopperShape shape = hopper_shape(problem, is_transposed(problem));
    return sum(shape.a_by_threads ? bytes(problem.m, shape.a_k_major, problem.a) : 0,
               shape.b_by_threads ? bytes(problem.n, shape.b_k_major, problem.b) : 0);
}

bool may_repack(const GemmProblem& problem, const DeviceProperties& device) noexcept
{
    return repacked_bytes(problem) <= device.memory_bytes / repacking_memory_share;
}

void repack_operands(EncodedLaunch& launch, kernels::HopperArguments& arguments, std::size_t element_bytes,
                     std::int64_t batches, std::byte* memory)
{
    launch.copied_element_bytes = static_cast<std::uint32_t>(element_bytes);
    const auto bytes = static_cast<std::int64_t>(element_bytes);
    const auto redirect = [&](kernels::Operand& operand, std::int64_t& row_stride, std::int64_t& k_stride,
                              std::int64_t rows, bool batched, bool& k_major, bool& by_threads) {
        if (!by_threads) {
            return;
        }
        const std::int64_t k = arguments.gemm.k;
        const bool copy_k_major = is_copy_k_major(k_major, element_bytes);
        kernels::Repacking& copy = launch.copies[launch.copy_count++];
        copy = {.source = static_cast<const std::byte*>(operand.data),
                .copy = memory,
                .source_stride = (k_major ? row_stride : k_stride) * bytes,
                .source_batch_stride = operand.batch_stride * bytes,
                .copy_stride = copied_line(copy_k_major ? k : rows, element_bytes),
                .copy_batch_stride = 0,
                .lines = k_major ? rows : k,
                .run = k_major ? k : rows,
                .batches = batched ? batches : 1,
                .transposes = copy_k_major != k_major};
        copy.copy_batch_stride = copy.copy_stride * (copy_k_major ? rows : k);
        memory += copy.copy_batch_stride * copy.batches;

        (copy_k_major ? row_stride : k_stride) = copy.copy_stride / bytes;
        (copy_k_major ? k_stride : row_stride) = 1;
        operand.data = copy.copy;
        operand.batch_stride = copy.copy_batch_stride / bytes;
        k_major = copy_k_major;
        by_threads = false;
    };
    kernels::Operand& a = arguments.gemm.a;
    kernels::Operand& b = arguments.gemm.b;
    redirect(a, a.row_stride, a.column_stride, arguments.gemm.m, arguments.a_batched, arguments.a_k_major,
             arguments.a_by_threads);
    redirect(b, b.column_stride, b.row_stride, arguments.gemm.n, arguments.b_batched, arguments.b_k_major,
             arguments.b_by_threads);
}

}  // namespace tessera::detail
