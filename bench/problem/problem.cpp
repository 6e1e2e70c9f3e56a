#include "problem/problem.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <stdexcept>

namespace tessera::bench {

GemmProblem Problem::gemm_problem() const
{
    GemmProblem problem;
    problem.m = shape.m;
    problem.n = shape.n;
    problem.k = shape.k;
    problem.input = input;
    problem.output = output;
    problem.a.row_major = orders.a_row_major;
    problem.a.leading_dimension = a_leading_dimension();
    problem.b.row_major = orders.b_row_major;
    problem.b.leading_dimension = b_leading_dimension();
    if (has_bias(fusion)) {
        problem.bias = BiasAxis::per_column;
    }
    if (has_c(fusion)) {
        problem.has_c = true;
        problem.c.leading_dimension = shape.n;
    }
    problem.fp8_accumulation = accumulation;
    problem.f16_accumulation = sums;
    switch (fusion) {
        case Fusion::bias_relu: problem.activation = Activation::relu; break;
        case Fusion::bias_gelu: problem.activation = Activation::gelu; break;
        case Fusion::bias_gelu_tanh: problem.activation = Activation::gelu_tanh; break;
        case Fusion::bias_silu: problem.activation = Activation::silu; break;
        case Fusion::swiglu:
            problem.activation = Activation::silu;
            problem.gating = Gating::side_by_side;
            break;
        default: break;
    }
    return problem;
}

Shape parse_shape(std::string_view text)
{
    const auto refuse = [&] {
        return std::invalid_argument(fmt::format(
            "'{}' is not a size: write MxNxK, or one number for a cube, each from 1 to {}", text, max_extent));
    };
    std::array<std::int64_t, 3> extents{};
    std::size_t count = 0;
    const char* position = text.data();
    const char* const end = text.data() + text.size();
    while (true) {
        const auto [after, status] = std::from_chars(position, end, extents[count]);
        if (status != std::errc{} || extents[count] < 1 || extents[count] > max_extent) {
            throw refuse();
        }
        ++count;
        if (after == end) {
            break;
        }
        if (*after != 'x' || count == extents.size()) {
            throw refuse();
        }
        position = after + 1;
    }
    if (count == 2) {
        throw refuse();
    }
    return count == 1 ? Shape{extents[0], extents[0], extents[0]} : Shape{extents[0], extents[1], extents[2]};
}

std::string to_string(const Shape& shape) { return fmt::format("{}x{}x{}", shape.m, shape.n, shape.k); }

ElementType parse_type(std::string_view text)
{
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
        if (tessera::to_string(type) == text) {
            return type;
        }
    }
    throw std::invalid_argument(fmt::format("'{}' is not an element type: write f32, f16 or bf16", text));
}

Types parse_types(std::string_view text)
{
    constexpr std::array all{ElementType::f32,  ElementType::f16,    ElementType::bf16,
                             ElementType::tf32, ElementType::f8e4m3, ElementType::f8e5m2};
    const auto parse = [&](std::string_view name, const auto& allowed) {
        for (const ElementType type : all) {
            if (tessera::to_string(type) == name && allowed(type)) {
                return type;
            }
        }
        throw std::invalid_argument(fmt::format(
            "'{}' is not a pair of types: write input:output, where A and B are f32, f16, bf16, tf32, f8e4m3 or "
            "f8e5m2 and D is f32, f16 or bf16",
            text));
    };
    const std::size_t colon = text.find(':');
    const ElementType input = parse(text.substr(0, colon), [](ElementType) { return true; });
    if (colon != std::string_view::npos) {
        return {input, parse(text.substr(colon + 1), [](ElementType type) { return is_addend(type); })};
    }
    return {input, is_addend(input) ? input : is_float8(input) ? ElementType::bf16 : ElementType::f32};
}

std::string to_string(const Types& types)
{
    return fmt::format("{}:{}", tessera::to_string(types.input), tessera::to_string(types.output));
}

Fp8Accumulation parse_accumulation(std::string_view text)
{
    for (const Fp8Accumulation accumulation : {Fp8Accumulation::fast, Fp8Accumulation::two_level}) {
        if (text == to_string(accumulation)) {
            return accumulation;
        }
    }
    throw std::invalid_argument(fmt::format("'{}' is not a way to accumulate: write fast or two-level", text));
}

std::string_view to_string(Fp8Accumulation accumulation) noexcept
{
    return accumulation == Fp8Accumulation::fast ? "fast" : "two-level";
}

F16Accumulation parse_sums(std::string_view text)
{
    for (const F16Accumulation sums : {F16Accumulation::in_f32, F16Accumulation::in_f16}) {
        if (text == to_string(sums)) {
            return sums;
        }
    }
    throw std::invalid_argument(fmt::format("'{}' is not a type of sums: write f32 or f16", text));
}

std::string_view to_string(F16Accumulation accumulation) noexcept
{
    return accumulation == F16Accumulation::in_f16 ? "f16" : "f32";
}

Orders parse_orders(std::string_view text)
{
    const auto known = [](char letter) { return letter == 'r' || letter == 'c'; };
    if (text.size() != 2 || !known(text[0]) || !known(text[1])) {
        throw std::invalid_argument(
            fmt::format("'{}' is not a pair of orders: write rr, rc, cr or cc (A, then B; r is row-major)", text));
    }
    return {text[0] == 'r', text[1] == 'r'};
}

std::string to_string(const Orders& orders)
{
    return fmt::format("{}{}", orders.a_row_major ? 'r' : 'c', orders.b_row_major ? 'r' : 'c');
}

}  // namespace tessera::bench
