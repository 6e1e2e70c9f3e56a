#include "gemm/gemm_batches.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace tessera::detail {
namespace {

using Form = BatchLevels::Form;

bool is_product(std::int64_t stride, std::int64_t count, std::int64_t step) noexcept
{
    std::int64_t product = 0;
    return !__builtin_mul_overflow(count, step, &product) && stride == product;
}

/// Strides in elements: inside the batch of one launch, and from one launch to the next.
struct Strides {
    std::int64_t batch;
    std::int64_t launch;
};

Strides strides_of(Form form, std::int64_t batch_stride, std::int64_t outer_stride) noexcept
{
    switch (form) {
        case Form::inner: return {batch_stride, 0};
        case Form::outer: return {outer_stride, 0};
        case Form::loops_outer: return {batch_stride, outer_stride};
        case Form::loops_inner: return {outer_stride, batch_stride};
    }
    return {0, 0};
}

/// Returns the largest power of two that divides both.
std::size_t common_alignment(std::size_t alignment, std::int64_t bytes) noexcept
{
    const auto combined = alignment | static_cast<std::size_t>(bytes);
    return combined & (~combined + 1);
}

}  // namespace

BatchLevels levels_of(const GemmProblem& problem) noexcept
{
    const std::int64_t inner = problem.batches;
    const std::int64_t outer = problem.outer_batches;
    if (outer == 1 || inner == 0) {
        return {Form::inner, inner, 1};
    }
    if (inner == 1 || outer == 0) {
        return {Form::outer, outer, 1};
    }
    std::int64_t all = 0;
    if (!__builtin_mul_overflow(inner, outer, &all)) {
        const MatrixLayout* const c = problem.has_c ? &problem.c : &problem.d;
        const MatrixLayout* const x = problem.has_pre_activation ? &problem.pre_activation : &problem.d;
        const std::array layouts{&problem.a, &problem.b, &problem.d, c, x};
        const auto fold = [&](auto continues) { return std::all_of(layouts.begin(), layouts.end(), continues); };
        if (fold([&](const MatrixLayout* one) { return is_product(one->outer_stride, inner, one->batch_stride); })) {
            return {Form::inner, all, 1};
        }
        if (fold([&](const MatrixLayout* one) { return is_product(one->batch_stride, outer, one->outer_stride); })) {
            return {Form::outer, all, 1};
        }
    }
    return outer <= inner ? BatchLevels{Form::loops_outer, inner, outer} : BatchLevels{Form::loops_inner, outer, inner};
}

GemmProblem one_launch(const GemmProblem& problem, const BatchLevels& levels) noexcept
{
    GemmProblem one = problem;
    one.batches = levels.per_launch;
    one.outer_batches = 1;
    const auto flatten = [&](MatrixLayout& layout, std::size_t element_bytes) {
        const Strides strides = strides_of(levels.form, layout.batch_stride, layout.outer_stride);
        layout.batch_stride = strides.batch;
        layout.outer_stride = 0;
        layout.address_alignment =
            common_alignment(layout.address_alignment, strides.launch * static_cast<std::int64_t>(element_bytes));
    };
    flatten(one.a, size_of(problem.input.a));
    flatten(one.b, size_of(problem.input.b));
    flatten(one.d, size_of(problem.output));
    const std::size_t addend_bytes = is_float8(problem.output) ? size_of(ElementType::bf16) : size_of(problem.output);
    flatten(one.c, addend_bytes);
    flatten(one.pre_activation, addend_bytes);
    return one;
}

MatrixOperand one_launch(const MatrixOperand& operand, const BatchLevels& levels, std::int64_t index) noexcept
{
    const Strides strides = strides_of(levels.form, operand.batch_stride, operand.outer_stride);
    MatrixOperand one = operand;
    one.batches = levels.per_launch;
    one.batch_stride = strides.batch;
    one.outer_batches = 1;
    one.outer_stride = 0;
    if (strides.launch != 0 && index != 0) {
        one.data = static_cast<const std::byte*>(operand.data) +
                   index * strides.launch * static_cast<std::int64_t>(size_of(operand.type));
    }
    return one;
}

}  // namespace tessera::detail
