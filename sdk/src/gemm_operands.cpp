#include "gemm_operands.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

namespace tessera::detail {
namespace {

std::string shape(const MatrixOperand& operand) { return fmt::format("{}x{}", operand.rows, operand.columns); }

void require_shapes(const GemmOperands& operands, const Epilogue& epilogue, std::string_view operation,
                    const std::source_location& caller)
{
    const auto& [a, b, d] = operands;
    const auto mismatch = [&](const std::string& message, const std::string& cure = {}) {
        raise(ErrorCode::shape_mismatch, operation, caller, message, cure);
    };
    if (a.columns != b.rows) {
        mismatch(fmt::format("A is {} and B is {}: A*B needs A's columns ({}) equal to B's rows ({})", shape(a),
                             shape(b), a.columns, b.rows),
                 a.columns == b.columns ? "B looks transposed: pass b.transposed()"
                 : a.rows == b.rows     ? "A looks transposed: pass a.transposed()"
                                        : "");
    }
    if (d.rows != a.rows || d.columns != b.columns) {
        mismatch(fmt::format("A is {} and B is {}, so A*B is {}x{}, but D is {}", shape(a), shape(b), a.rows, b.columns,
                             shape(d)),
                 d.rows == b.columns && d.columns == a.rows ? "D looks transposed: pass d.transposed()" : "");
    }
    if (a.batches != b.batches || a.batches != d.batches) {
        mismatch(fmt::format("A has {}, B has {} and D has {} matrices", a.batches, b.batches, d.batches),
                 "batches of equal counts; a batch stride of 0 uses one input matrix for all");
    }
    const MatrixOperand& c = epilogue.c;
    if (epilogue.beta != 0 && !c.present) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("beta is {} and there is no C to multiply it with", epilogue.beta),
              "set .c, or leave beta at 0");
    }
    if (c.present) {
        if (c.rows != d.rows || c.columns != d.columns || c.batches != d.batches) {
            mismatch(fmt::format("C is {} ({} matrices) and D is {} ({} matrices): they must be equal", shape(c),
                                 c.batches, shape(d), d.batches),
                     c.rows == d.columns && c.columns == d.rows ? "C looks transposed: pass c.transposed()" : "");
        }
        if (c.type != d.type) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  fmt::format("C has elements of {} and D of {}: they must be equal", to_string(c.type),
                              to_string(d.type)));
        }
    }
    const auto require_scale = [&](std::string_view name, DeviceSpan<const float> scale) {
        if (scale.size() > 1) {
            mismatch(fmt::format("{} has {} elements: the scale of a tensor is one float", name, scale.size()),
                     "a span of the one element, e.g. scales.span().subspan(i, 1)");
        }
    };
    require_scale("scale_a", epilogue.scale_a);
    require_scale("scale_b", epilogue.scale_b);
    const Bias& bias = epilogue.bias;
    if (bias.axis != BiasAxis::none) {
        const bool per_row = bias.axis == BiasAxis::per_row;
        const std::int64_t needed = per_row ? d.rows : d.columns;
        if (bias.size != static_cast<std::size_t>(needed)) {
            mismatch(fmt::format("the bias has {} elements and D is {}: a bias per {} needs {}", bias.size, shape(d),
                                 per_row ? "row" : "column", needed));
        }
    }
}

/// Where an operand lies, in bytes: `vectors` runs of `run` bytes, `pitch` apart, in `batches` groups, `batch_pitch`
/// apart.
struct Footprint {
    std::uintptr_t begin;
    std::uintptr_t end;
    std::uintptr_t run;
    std::uintptr_t pitch;
    std::uintptr_t batch_pitch;
};

Footprint footprint(const MatrixOperand& operand)
{
    const std::uintptr_t bytes = size_of(operand.type);
    const auto vectors = static_cast<std::uintptr_t>(operand.row_major ? operand.rows : operand.columns);
    const auto run = static_cast<std::uintptr_t>(operand.row_major ? operand.columns : operand.rows) * bytes;
    const auto pitch = static_cast<std::uintptr_t>(operand.leading_dimension) * bytes;
    const auto batch_pitch = static_cast<std::uintptr_t>(operand.batch_stride) * bytes;
    const auto begin = std::bit_cast<std::uintptr_t>(operand.data);
    if (vectors == 0 || run == 0 || operand.batches == 0) {
        return {begin, begin, 0, 0, 0};
    }
    const std::uintptr_t end =
        begin + (static_cast<std::uintptr_t>(operand.batches) - 1) * batch_pitch + (vectors - 1) * pitch + run;
    return {begin, end, run, pitch, operand.batches > 1 ? batch_pitch : 0};
}

/// True if the two may share a byte. Blocks beside each other in one parent matrix do not: their runs repeat with the
/// same pitch and never meet.
bool may_overlap(const Footprint& left, const Footprint& right)
{
    if (left.begin == left.end || right.begin == right.end || left.end <= right.begin || right.end <= left.begin) {
        return false;
    }
    const std::uintptr_t pitch = left.pitch;
    if (pitch == 0 || pitch != right.pitch || left.batch_pitch % pitch != 0 || right.batch_pitch % pitch != 0) {
        return true;
    }
    const std::uintptr_t left_phase = left.begin % pitch;
    const std::uintptr_t offset = (right.begin % pitch + pitch - left_phase) % pitch;  // of right's runs behind left's
    return offset < left.run || offset + right.run > pitch;
}

void require_no_alias(const GemmOperands& operands, const Epilogue& epilogue, std::string_view operation,
                      const std::source_location& caller)
{
    const MatrixOperand& d = operands.d;
    const Footprint output = footprint(d);
    const auto refuse = [&](const char* name, const std::string& cure) {
        raise(
            ErrorCode::aliasing, operation, caller,
            fmt::format("D at {} overlaps {}, which the kernel still reads while it writes D", fmt::ptr(d.data), name),
            cure);
    };
    if (may_overlap(output, footprint(operands.a))) {
        refuse("A", "give D memory of its own");
    }
    if (may_overlap(output, footprint(operands.b))) {
        refuse("B", "give D memory of its own");
    }
    const MatrixOperand& c = epilogue.c;
    const bool same_matrix = c.data == d.data && c.row_major == d.row_major &&
                             c.leading_dimension == d.leading_dimension &&
                             (d.batches <= 1 || c.batch_stride == d.batch_stride);
    if (epilogue.beta != 0 && !same_matrix && may_overlap(output, footprint(c))) {
        refuse("C", "pass the same view as C and as D, or give D memory of its own");
    }
    const auto require_apart = [&](const char* name, const void* data, std::uintptr_t bytes) {
        const auto begin = std::bit_cast<std::uintptr_t>(data);
        if (may_overlap(output, {begin, begin + bytes, bytes, 0, 0})) {
            refuse(name, "give D memory of its own");
        }
    };
    const Bias& bias = epilogue.bias;
    if (bias.axis != BiasAxis::none) {
        require_apart("the bias", bias.data, bias.size * size_of(bias.type));
    }
    require_apart("scale_a", epilogue.scale_a.data(), epilogue.scale_a.size_bytes());
    require_apart("scale_b", epilogue.scale_b.data(), epilogue.scale_b.size_bytes());
}

void require_one_device(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue,
                        std::string_view operation, const std::source_location& caller)
{
    const auto require = [&](std::string_view name, int device) {
        require_same_device(operation, caller, "the stream", stream.device(), name, device);
    };
    require("A", operands.a.device);
    require("B", operands.b.device);
    require("D", operands.d.device);
    require("C", epilogue.c.device);
    require("the bias", epilogue.bias.device);
    require("scale_a", epilogue.scale_a.device());
    require("scale_b", epilogue.scale_b.device());
}

/// The largest power of two, up to what any kernel asks for, that divides the address.
std::size_t alignment_of(const void* data) noexcept
{
    constexpr std::uintptr_t enough = 256;
    const auto address = std::bit_cast<std::uintptr_t>(data) | enough;
    return address & (~address + 1);
}

MatrixLayout layout_of(const MatrixOperand& operand) noexcept
{
    return {operand.row_major, operand.leading_dimension, operand.batch_stride, alignment_of(operand.data)};
}

kernels::Operand kernel_operand(const MatrixOperand& operand) noexcept
{
    return {operand.data, operand.row_major ? operand.leading_dimension : 1,
            operand.row_major ? 1 : operand.leading_dimension, operand.batch_stride};
}

kernels::Operand transposed(const kernels::Operand& operand) noexcept
{
    return {operand.data, operand.column_stride, operand.row_stride, operand.batch_stride};
}

}  // namespace

void require_operands(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue,
                      std::string_view operation, const std::source_location& caller)
{
    require_shapes(operands, epilogue, operation, caller);
    require_one_device(stream, operands, epilogue, operation, caller);
    require_no_alias(operands, epilogue, operation, caller);
}

GemmProblem problem_of(const GemmOperands& operands, const Epilogue& epilogue) noexcept
{
    GemmProblem problem;
    problem.m = operands.d.rows;
    problem.n = operands.d.columns;
    problem.k = operands.a.columns;
    problem.batches = operands.d.batches;
    problem.input = {operands.a.type, operands.b.type};
    problem.output = operands.d.type;
    problem.a = layout_of(operands.a);
    problem.b = layout_of(operands.b);
    problem.d = layout_of(operands.d);
    problem.has_c = epilogue.beta != 0;
    problem.bias = epilogue.bias.axis;
    problem.activation = epilogue.activation;
    problem.fp8_accumulation = epilogue.fp8_accumulation;
    return problem;
}

kernels::GemmArguments arguments_of(const GemmOperands& operands, const Epilogue& epilogue) noexcept
{
    const auto& [a, b, d] = operands;
    kernels::GemmArguments arguments{};
    arguments.a = kernel_operand(a);
    arguments.b = kernel_operand(b);
    arguments.c = kernel_operand(epilogue.c);
    const kernels::Operand output = kernel_operand(d);
    arguments.d = const_cast<void*>(d.data);  // Gemm::launch has refused views of const elements
    arguments.d_row_stride = output.row_stride;
    arguments.d_column_stride = output.column_stride;
    arguments.d_batch_stride = d.batch_stride;
    arguments.bias = epilogue.bias.data;
    arguments.m = d.rows;
    arguments.n = d.columns;
    arguments.k = a.columns;
    if (epilogue.alpha == 0) {  // the product is not looked at: no k, no NaN from A, B or a scale
        arguments.k = 0;
    } else {
        const auto address = [](DeviceSpan<const float> scale) { return scale.empty() ? nullptr : scale.data(); };
        arguments.scale_a = address(epilogue.scale_a);
        arguments.scale_b = address(epilogue.scale_b);
    }
    arguments.alpha = epilogue.alpha;
    arguments.beta = epilogue.beta;
    arguments.a_type = a.type;
    arguments.b_type = b.type;
    arguments.d_type = d.type;
    arguments.bias_type = epilogue.bias.type;
    arguments.bias_axis = epilogue.bias.axis;
    arguments.activation = epilogue.activation;
    if (!d.row_major) {
        const kernels::Operand left = arguments.a;
        arguments.a = transposed(arguments.b);
        arguments.b = transposed(left);
        arguments.c = transposed(arguments.c);
        std::swap(arguments.a_type, arguments.b_type);
        std::swap(arguments.m, arguments.n);
        std::swap(arguments.d_row_stride, arguments.d_column_stride);
        if (arguments.bias_axis != BiasAxis::none) {
            arguments.bias_axis = arguments.bias_axis == BiasAxis::per_row ? BiasAxis::per_column : BiasAxis::per_row;
        }
    }
    return arguments;
}

}  // namespace tessera::detail
