#pragma once

/// The products to measure, and their names on the command line.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "problem/fusion.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::bench {

struct Shape {
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;

    friend bool operator==(const Shape&, const Shape&) = default;
};

/// "fast" or "two-level". @throws std::invalid_argument
Fp8Accumulation parse_accumulation(std::string_view text);
std::string_view to_string(Fp8Accumulation accumulation) noexcept;

/// "f32" or "f16". @throws std::invalid_argument
F16Accumulation parse_sums(std::string_view text);
std::string_view to_string(F16Accumulation accumulation) noexcept;

/// Storage orders of A and B. D is always row-major.
struct Orders {
    bool a_row_major = true;
    bool b_row_major = true;

    friend bool operator==(const Orders&, const Orders&) = default;
};

/// D = A*B with A and B of type `input`, and the epilogue.
struct Problem {
    Shape shape;
    ElementType input = ElementType::f32;
    Orders orders;
    ElementType output = ElementType::f32;
    /// Elements after each row of A and B (after each column if they are column-major). D has no gaps.
    std::int64_t padding = 0;
    Fusion fusion = Fusion::none;  ///< what the epilogue adds and applies
    /// How Hopper's tensor cores add 8-bit products; of no effect for others. cuBLASLt's default is `two_level`.
    Fp8Accumulation accumulation = Fp8Accumulation::fast;
    /// In what our `mma_sync` may add f16 products; of no effect for others. Peers add them in f32.
    F16Accumulation sums = F16Accumulation::in_f32;
    /// Where the problem comes from: "Llama 3 8B gate+up". Empty for most; takes no part in comparisons.
    std::string layer = {};

    double flops() const noexcept
    {
        return 2.0 * static_cast<double>(shape.m) * static_cast<double>(shape.n) * static_cast<double>(shape.k);
    }
    std::int64_t a_leading_dimension() const noexcept { return padding + (orders.a_row_major ? shape.k : shape.m); }
    std::int64_t b_leading_dimension() const noexcept { return padding + (orders.b_row_major ? shape.n : shape.k); }
    /// In elements, gaps included.
    std::size_t a_size() const noexcept
    {
        return static_cast<std::size_t>(a_leading_dimension() * (orders.a_row_major ? shape.m : shape.k));
    }
    std::size_t b_size() const noexcept
    {
        return static_cast<std::size_t>(b_leading_dimension() * (orders.b_row_major ? shape.k : shape.n));
    }
    std::int64_t d_columns() const noexcept { return is_gated(fusion) ? shape.n / 2 : shape.n; }
    std::size_t d_size() const noexcept { return static_cast<std::size_t>(shape.m * d_columns()); }
    /// Of A, B and D, and of C if there is one.
    std::size_t bytes() const noexcept
    {
        return (a_size() + b_size()) * size_of(input) + (has_c(fusion) ? 2 : 1) * d_size() * size_of(output);
    }

    friend bool operator==(const Problem& one, const Problem& other)
    {
        return one.shape == other.shape && one.input == other.input && one.orders == other.orders &&
               one.output == other.output && one.padding == other.padding && one.fusion == other.fusion &&
               one.accumulation == other.accumulation && one.sums == other.sums;
    }

    /// The problem for the SDK.
    GemmProblem gemm_problem() const;
};

/// Larger extents are refused, because sizes in bytes could exceed 64 bits.
inline constexpr std::int64_t max_extent = std::int64_t{1} << 24;

/// "4096x4096x64" is M x N x K, "1024" is 1024 cubed. @throws std::invalid_argument with a sentence
Shape parse_shape(std::string_view text);
std::string to_string(const Shape& shape);

/// "f32", "f16" or "bf16". @throws std::invalid_argument
ElementType parse_type(std::string_view text);

/// The type of A and B, and the type of D.
struct Types {
    ElementType input;
    ElementType output;

    friend bool operator==(const Types&, const Types&) = default;
};

/// "bf16:f32" is D in f32 from A and B in bf16. "bf16" is short for "bf16:bf16"; an 8-bit type alone has D in bf16, and
/// tf32 alone has D in f32. @throws std::invalid_argument
Types parse_types(std::string_view text);
std::string to_string(const Types& types);

/// "rr", "rc", "cr" or "cc": A's order, then B's; r is row-major. @throws std::invalid_argument
Orders parse_orders(std::string_view text);
std::string to_string(const Orders& orders);

}  // namespace tessera::bench
