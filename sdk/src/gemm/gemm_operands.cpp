#include "gemm/gemm_operands.hpp"

#include <fmt/format.h>

#include <bit>
#include <utility>

#include "gemm/operand_overlap.hpp"

namespace tessera::detail {

std::string shape(const MatrixOperand& operand) { return fmt::format("{}x{}", operand.rows, operand.columns); }

std::string count(const MatrixOperand& operand)
{
    return operand.outer_batches == 1 ? fmt::format("{}", operand.batches)
                                      : fmt::format("{}x{}", operand.outer_batches, operand.batches);
}

namespace {

/// Returns true if, on each level, `operand` has one matrix per matrix of D, or one for all.
bool serves_batch(const MatrixOperand& operand, const MatrixOperand& d)
{
    return (operand.batches == d.batches || operand.batches == 1) &&
           (operand.outer_batches == d.outer_batches || operand.outer_batches == 1);
}

/// Checks an operand that was made from raw values. A view was checked when it was created.
void require_sound(const char* name, const MatrixOperand& operand, std::string_view operation,
                   const std::source_location& caller)
{
    const auto refuse = [&](const std::string& message, const std::string& cure) {
        raise(ErrorCode::invalid_argument, operation, caller, message, cure);
    };
    if (!operand.present) {
        refuse(fmt::format("{} is an empty MatrixOperand", name),
               "make it from a view, or with MatrixOperand::from_raw_device_pointer");
    }
    if (operand.rows < 0 || operand.columns < 0 || operand.batches < 0 || operand.outer_batches < 0) {
        refuse(fmt::format("{} is {} and has {} matrices", name, shape(operand), count(operand)),
               "extents of 0 or more");
    }
    if (operand.leading_dimension < (operand.row_major ? operand.columns : operand.rows)) {
        refuse(fmt::format("{} is {} {} and has leading dimension {}", name, shape(operand),
                           operand.row_major ? "row-major" : "column-major", operand.leading_dimension),
               fmt::format("a leading dimension of at least {}", operand.row_major ? operand.columns : operand.rows));
    }
    if (operand.batch_stride < 0 || operand.outer_stride < 0) {
        refuse(fmt::format("{} has a batch stride of {} and an outer stride of {}", name, operand.batch_stride,
                           operand.outer_stride),
               "strides of 0 or more");
    }
}

/// The type rules that views are checked against at compile time.
void require_types(const GemmOperands& operands, std::string_view operation, const std::source_location& caller)
{
    const auto& [a, b, d] = operands;
    if (!can_multiply({a.type, b.type})) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("A has elements of {} and B of {}", to_string(a.type), to_string(b.type)),
              "convert one of them; only f8e4m3 and f8e5m2 can be mixed");
    }
    if (!is_output(d.type)) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("D cannot have elements of {}", to_string(d.type)),
              "a D of f32, f16, bf16, f8e4m3 or f8e5m2; tf32 is for A and B only");
    }
    if (!d.writable) {
        raise(ErrorCode::invalid_argument, operation, caller, "D has const elements and cannot be written",
              "a view of a buffer that is not const, or a pointer to elements that are not const");
    }
}

/// C and the pre-activation have D's type. Beside a D of 8 bits they have 16 bits.
void require_addend_type(const char* name, const MatrixOperand& addend, const MatrixOperand& d,
                         std::string_view operation, const std::source_location& caller)
{
    const bool has_16_bits = addend.type == ElementType::f16 || addend.type == ElementType::bf16;
    if (is_float8(d.type) ? has_16_bits : addend.type == d.type) {
        return;
    }
    raise(ErrorCode::invalid_argument, operation, caller,
          fmt::format("{} has elements of {} and D of {}: {}", name, to_string(addend.type), to_string(d.type),
                      is_float8(d.type) ? "beside an 8-bit D it has 16 bits" : "they must be equal"),
          fmt::format("a {} of {}", name == std::string_view("C") ? "C" : "pre-activation",
                      is_float8(d.type) ? "f16 or bf16" : to_string(d.type)));
}

/// The pre-activation's own rules. @pre D is checked
void require_pre_activation(const MatrixOperand& x, const MatrixOperand& d, std::string_view operation,
                            const std::source_location& caller)
{
    if (!x.present) {
        return;
    }
    require_sound("the pre-activation", x, operation, caller);
    const auto refuse = [&](ErrorCode code, const std::string& message, const std::string& cure) {
        raise(code, operation, caller, message, cure);
    };
    if (!x.writable) {
        refuse(ErrorCode::invalid_argument, "the pre-activation has const elements and cannot be written",
               "a view of a buffer that is not const, or a pointer to elements that are not const");
    }
    require_addend_type("the pre-activation", x, d, operation, caller);
    if (x.row_major != d.row_major) {
        const auto order = [](const MatrixOperand& matrix) { return matrix.row_major ? "row-major" : "column-major"; };
        refuse(ErrorCode::invalid_argument,
               fmt::format("the pre-activation is {} and D is {}: they must be equal", order(x), order(d)),
               fmt::format("a {} pre-activation", order(d)));
    }
    if (x.rows != d.rows || x.columns != d.columns) {
        refuse(ErrorCode::shape_mismatch,
               fmt::format("the pre-activation is {} and D is {}: they must be equal", shape(x), shape(d)),
               fmt::format("a pre-activation of {}", shape(d)));
    }
    if (x.batches != d.batches || x.outer_batches != d.outer_batches) {
        refuse(ErrorCode::shape_mismatch,
               fmt::format("the pre-activation has {} and D has {} matri{}", count(x), count(d),
                           d.batches == 1 && d.outer_batches == 1 ? "x" : "ces"),
               "batches of equal counts: each product has its own pre-activation");
    }
}

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
                                        : fmt::format("a B of {} rows, or an A of {} columns", a.columns, b.rows));
    }
    const bool gated = epilogue.gating != Gating::none;
    if (gated && b.columns % 2 != 0) {
        mismatch(fmt::format("B is {}: its {} columns do not make pairs of a gate and a factor", shape(b), b.columns),
                 "a B with an even number of columns, or Gating::none");
    }
    if (gated && beta_of(epilogue) != 0) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("the product has gated pairs and adds C with beta = {}", beta_of(epilogue)),
              "add C in the next product; gated pairs have no C");
    }
    if (gated && epilogue.pre_activation.present) {
        raise(ErrorCode::invalid_argument, operation, caller,
              "the product has gated pairs and stores the pre-activation, which has twice the columns of D",
              "compute A*B without gating where its columns are needed, or leave the pre-activation out");
    }
    if (gated && (d.rows != a.rows || d.columns != b.columns / 2)) {
        mismatch(fmt::format("A is {} and B is {}, so pairs of columns of A*B make {}x{}, but D is {}", shape(a),
                             shape(b), a.rows, b.columns / 2, shape(d)),
                 fmt::format("a D of {}x{}", a.rows, b.columns / 2));
    }
    if (!gated && (d.rows != a.rows || d.columns != b.columns)) {
        mismatch(fmt::format("A is {} and B is {}, so A*B is {}x{}, but D is {}", shape(a), shape(b), a.rows, b.columns,
                             shape(d)),
                 d.rows == b.columns && d.columns == a.rows ? "D looks transposed: pass d.transposed()"
                                                            : fmt::format("a D of {}x{}", a.rows, b.columns));
    }
    if (!serves_batch(a, d) || !serves_batch(b, d)) {
        const bool single = d.batches == 1 && d.outer_batches == 1;
        mismatch(
            fmt::format("A has {}, B has {} and D has {} matri{}", count(a), count(b), count(d), single ? "x" : "ces"),
            single ? "a batch for D, with one matrix for each product"
                   : "batches of equal counts; an input may be a single matrix, which is used for all products");
    }
    const MatrixOperand& c = epilogue.c;
    const float beta = beta_of(epilogue);
    if (beta != 0 && !c.present) {
        raise(ErrorCode::invalid_argument, operation, caller, fmt::format("beta is {}, but there is no C", beta),
              "set .c, or leave beta out");
    }
    if (c.present) {
        if (c.rows != d.rows || c.columns != d.columns) {
            mismatch(fmt::format("C is {} and D is {}: they must be equal", shape(c), shape(d)),
                     c.rows == d.columns && c.columns == d.rows ? "C looks transposed: pass c.transposed()"
                                                                : fmt::format("a C of {}x{}", d.rows, d.columns));
        }
        if (!serves_batch(c, d)) {
            mismatch(fmt::format("C has {} and D has {} matri{}", count(c), count(d),
                                 d.batches == 1 && d.outer_batches == 1 ? "x" : "ces"),
                     "batches of equal counts, or a single matrix as C, which is used for all products");
        }
        require_addend_type("C", c, d, operation, caller);
    }
    const auto require_scale = [&](char name, DeviceSpan<const float> scale, const MatrixOperand& operand,
                                   std::int64_t lines, std::string_view line) {
        if (scale.size() > 1 && scale.size() != static_cast<std::size_t>(lines)) {
            const char vector = static_cast<char>(name - 'A' + 'a');
            mismatch(fmt::format("scale_{} has {} elements and {} is {}: it needs 1, or {} for one per {}", vector,
                                 scale.size(), name, shape(operand), lines, line),
                     lines > 1
                         ? fmt::format("a span of 1 or of {} elements, such as scales.span().subspan(i, 1)", lines)
                         : "a span of one element, such as scales.span().subspan(i, 1)");
        }
    };
    require_scale('A', epilogue.scale_a, a, a.rows, "row");
    require_scale('B', epilogue.scale_b, b, b.columns, "column");
    if (epilogue.scale_d.size() > 1) {
        mismatch(fmt::format("scale_d has {} elements: a tensor has one scale", epilogue.scale_d.size()),
                 "a span of one element, such as scales.span().subspan(i, 1)");
    }
    if (epilogue.amax_d.size() > 1) {
        mismatch(fmt::format("amax_d has {} elements: a tensor has one largest magnitude", epilogue.amax_d.size()),
                 "a span of one element, such as maxima.span().subspan(i, 1)");
    }
    const auto require_8_bits = [&](std::string_view name, bool is_given) {
        if (is_given && !is_float8(d.type)) {
            raise(ErrorCode::invalid_argument, operation, caller,
                  fmt::format("{} is given and D has elements of {}: it is for an 8-bit D", name, to_string(d.type)),
                  fmt::format("a D of f8e4m3 or f8e5m2, or no {}", name));
        }
    };
    require_8_bits("scale_d", !epilogue.scale_d.empty());
    require_8_bits("amax_d", !epilogue.amax_d.empty());
    const Bias& bias = epilogue.bias;
    if (bias.axis != BiasAxis::none) {
        const bool per_row = bias.axis == BiasAxis::per_row;
        const std::int64_t needed = per_row ? a.rows : b.columns;
        if (bias.size != static_cast<std::size_t>(needed)) {
            mismatch(
                gated && !per_row
                    ? fmt::format("the bias has {} elements and B is {}: a bias per column needs {}, because it is "
                                  "added before pairs are formed",
                                  bias.size, shape(b), needed)
                    : fmt::format("the bias has {} elements and D is {}: a bias per {} needs {}", bias.size, shape(d),
                                  per_row ? "row" : "column", needed),
                bias.size == static_cast<std::size_t>(per_row ? b.columns : a.rows)
                    ? fmt::format("Bias::per_{}", per_row ? "column" : "row")
                    : fmt::format("a bias of {} elements", needed));
        }
    }
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
    require("the pre-activation", epilogue.pre_activation.device);
    require("the bias", epilogue.bias.device);
    require("scale_a", epilogue.scale_a.device());
    require("scale_b", epilogue.scale_b.device());
    require("scale_d", epilogue.scale_d.device());
    require("amax_d", epilogue.amax_d.device());
}

/// Returns the largest power of two that divides the address, up to the largest that any kernel requires.
std::size_t alignment_of(const void* data) noexcept
{
    constexpr std::uintptr_t enough = 256;
    const auto address = std::bit_cast<std::uintptr_t>(data) | enough;
    return address & (~address + 1);
}

MatrixLayout layout_of(const MatrixOperand& operand) noexcept
{
    return {operand.row_major, operand.leading_dimension, operand.batch_stride, alignment_of(operand.data),
            operand.outer_stride};
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

void require_product(const GemmOperands& operands, const Epilogue& epilogue, std::string_view operation,
                     const std::source_location& caller)
{
    require_sound("A", operands.a, operation, caller);
    require_sound("B", operands.b, operation, caller);
    require_sound("D", operands.d, operation, caller);
    if (epilogue.c.present) {
        require_sound("C", epilogue.c, operation, caller);
    }
    require_types(operands, operation, caller);
    require_shapes(operands, epilogue, operation, caller);
    require_pre_activation(epilogue.pre_activation, operands.d, operation, caller);
}

void require_operands(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue,
                      std::string_view operation, const std::source_location& caller)
{
    require_product(operands, epilogue, operation, caller);
    require_one_device(stream, operands, epilogue, operation, caller);
    require_no_alias(operands, epilogue, operation, caller);
}

void share_single_matrices(GemmOperands& operands, Epilogue& epilogue) noexcept
{
    const MatrixOperand& d = operands.d;
    for (MatrixOperand* const operand : {&operands.a, &operands.b, &epilogue.c}) {
        if (operand->batches != d.batches) {
            operand->batches = d.batches;
            operand->batch_stride = 0;
        }
        if (operand->outer_batches != d.outer_batches) {
            operand->outer_batches = d.outer_batches;
            operand->outer_stride = 0;
        }
    }
}

GemmProblem problem_of(const GemmOperands& operands, const Epilogue& epilogue) noexcept
{
    GemmProblem problem;
    problem.m = operands.d.rows;
    problem.n = operands.b.columns;
    problem.k = operands.a.columns;
    problem.batches = operands.d.batches;
    problem.outer_batches = operands.d.outer_batches;
    problem.input = {operands.a.type, operands.b.type};
    problem.output = operands.d.type;
    problem.a = layout_of(operands.a);
    problem.b = layout_of(operands.b);
    problem.d = layout_of(operands.d);
    problem.has_c = beta_of(epilogue) != 0;
    if (problem.has_c) {
        problem.c = layout_of(epilogue.c);
    }
    problem.bias = epilogue.bias.axis;
    problem.activation = epilogue.activation;
    problem.has_pre_activation = epilogue.pre_activation.present;
    if (problem.has_pre_activation) {
        problem.pre_activation = layout_of(epilogue.pre_activation);
    }
    problem.fp8_accumulation = epilogue.fp8_accumulation;
    problem.f16_accumulation = epilogue.f16_accumulation;
    problem.gating = epilogue.gating;
    problem.row_scales = epilogue.scale_a.size() > 1;
    problem.column_scales = epilogue.scale_b.size() > 1;
    return problem;
}

kernels::GemmArguments transposed(kernels::GemmArguments arguments) noexcept
{
    const kernels::Operand left = arguments.a;
    arguments.a = transposed(arguments.b);
    arguments.b = transposed(left);
    arguments.c = transposed(arguments.c);
    std::swap(arguments.a_type, arguments.b_type);
    std::swap(arguments.m, arguments.n);
    std::swap(arguments.row_scales, arguments.column_scales);
    std::swap(arguments.d_row_stride, arguments.d_column_stride);
    std::swap(arguments.pre_activation.row_stride, arguments.pre_activation.column_stride);
    arguments.bias_axis = transposed(arguments.bias_axis);
    return arguments;
}

BiasAxis transposed(BiasAxis axis) noexcept
{
    switch (axis) {
        case BiasAxis::none: break;
        case BiasAxis::per_row: return BiasAxis::per_column;
        case BiasAxis::per_column: return BiasAxis::per_row;
    }
    return axis;
}

TileRaster raster_of(const kernels::GemmArguments& arguments, std::int64_t tile_m, std::int64_t tile_n,
                     std::uint32_t band) noexcept
{
    const auto tiles = [](std::int64_t extent, std::int64_t tile) {
        return static_cast<std::uint32_t>((extent + tile - 1) / tile);
    };
    return {tiles(arguments.m, tile_m), tiles(arguments.n, tile_n), band};
}

kernels::GemmArguments arguments_of(const GemmOperands& operands, const Epilogue& epilogue) noexcept
{
    const auto& [a, b, d] = operands;
    kernels::GemmArguments arguments{};
    arguments.a = kernel_operand(a);
    arguments.b = kernel_operand(b);
    arguments.c = kernel_operand(epilogue.c);
    const kernels::Operand output = kernel_operand(d);
    arguments.d = const_cast<void*>(d.data);  // require_operands has refused const elements
    arguments.d_row_stride = output.row_stride;
    arguments.d_column_stride = output.column_stride;
    arguments.d_batch_stride = d.batch_stride;
    const MatrixOperand& x = epilogue.pre_activation;
    const kernels::Operand pre_activation = kernel_operand(x);
    arguments.pre_activation = {x.present ? const_cast<void*>(x.data) : nullptr, pre_activation.row_stride,
                                pre_activation.column_stride, x.batch_stride, x.type};
    arguments.bias = epilogue.bias.data;
    arguments.m = d.rows;
    arguments.n = b.columns;
    arguments.k = a.columns;
    if (epilogue.alpha == 0) {  // the product is not computed: no k, and no NaN from A, B or a scale
        arguments.k = 0;
    } else {
        const auto pass = [](DeviceSpan<const float> scale, const float*& of_all, const float*& of_each) {
            if (!scale.empty()) {
                (scale.size() == 1 ? of_all : of_each) = scale.data();
            }
        };
        pass(epilogue.scale_a, arguments.scale_a, arguments.row_scales);
        pass(epilogue.scale_b, arguments.scale_b, arguments.column_scales);
    }
    arguments.scale_d = epilogue.scale_d.empty() ? nullptr : epilogue.scale_d.data();
    arguments.amax_d = epilogue.amax_d.empty() ? nullptr : epilogue.amax_d.data();
    arguments.alpha = epilogue.alpha;
    arguments.beta = beta_of(epilogue);
    arguments.a_type = a.type;
    arguments.b_type = b.type;
    arguments.c_type = epilogue.c.present ? epilogue.c.type : d.type;
    arguments.d_type = d.type;
    arguments.bias_type = epilogue.bias.type;
    arguments.bias_axis = epilogue.bias.axis;
    arguments.activation = epilogue.activation;
    arguments.gating = epilogue.gating;
    return d.row_major || epilogue.gating != Gating::none ? arguments : transposed(arguments);  // is_transposed()
}

}  // namespace tessera::detail
