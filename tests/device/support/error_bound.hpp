#pragma once

/// How much a product in fp32 may differ from the exact one: a float64 value and a bound, derived step by step from the
/// arithmetic that the library promises. No constant here was chosen to make a test pass.
///
/// The model of one fp32 operation (IEEE 754, round to nearest, gradual underflow) is
///
///     fl(x) = x (1 + delta) + eta,   |delta| <= u = 2^-24,   |eta| <= 2^-150 (half of the smallest subnormal).
///
/// Accumulator.  f16 and bf16 widen to f32 exactly, so acc is K such operations (fused multiply-adds) on exact inputs.
/// Any order of summation gives (Higham, Accuracy and Stability, section 3.1)
///
///     |acc - sum a b| <= gamma_K sum |a| |b| + K eta (1 + gamma_K),   gamma_K = K u / (1 - K u).
///
/// Tensor cores.  One instruction adds `terms` products to the sum so far. Each of them is truncated to F fraction bits
/// of the largest one's exponent, which loses less than 2^-F of its magnitude, and the result is truncated to R
/// fraction bits (measured: MMA-Sim, arXiv 2511.10909). No magnitude exceeds S = sum |a| |b|, so K / terms instructions
/// lose at most
///
///     loss S,   loss = K / terms ((terms + 1) 2^-F + 2^-R),
///
/// and (1 + loss) / (1 - loss) accounts for truncated sums that enter S themselves. Separate sums (two-level
/// accumulation, cluster split-K, stream-K) are added in fp32: at most K / terms roundings. `loss` is that of one of
/// these sums.
///
/// Sums in f16.  The same with a result that is rounded to nearest: off by up to 2^-11 of its magnitude, or by half of f16's
/// smallest subnormal, 2^-25. What is cut off of the products below their fixed steps, at most 9 * 2^-44, is far less than that.
/// There are at most as many roundings as products, so 2^-24 for each product is more than enough.
///
/// Epilogue.  alpha * acc, the product of row and column scale, its product with that, fma(beta, C, .) and . + bias are one operation each. If x is known up to e, f(x) is known up
/// to L e, L being a Lipschitz constant of f, and its rounding adds u (|f(x)| + L e) + eta. `after_rounding` is this
/// step.
///
/// ReLU.  L = 1, no rounding.
///
/// Activations but ReLU are quotients by 1 + exp(-z), with the hardware's exponential and reciprocal of it:
///     2^.                        relative error 2^-22 = 4u of the power, less of the divisor; a power beyond 2^128 is infinite
///     1 + .                      one rounding
///     1 / .                      one ulp, 2u; the reciprocal of 2^126 and more is 0, and so is then the result instead of
///                                |x| exp(z), which is below 89 * 2^-126 for z < -87.3
///     x * .                      one rounding, with eta: gamma_8 in all
///     z                          a relative error d moves the quotient by |z| d times the slope of 1 / (1 + exp(-z)). That
///                                product is at most 0.2240 d
///
/// SiLU.  x / (1 + exp(-x)) has the largest slope at x = 2.39935..., where it is 1.09983...
///     z                          x log2 e, with a rounded constant: gamma_2
///
/// Sigmoid.  1 / (1 + exp(-x)) has the slope 1/4 at 0. Its roundings are those of SiLU.
///
/// GELU.  x Phi(x), with Phi(x) = (1 + erf(x / sqrt 2)) / 2, has the largest slope at x = sqrt 2, where it is 1.12890...
/// It is x / (1 + exp(-z)) with z = x q(x^2), where q is a polynomial of degree 6.
///     q, exact                   1 / (1 + exp(-z)) is off by at most 0.61u from Phi(x)
///     z                          coefficient i is rounded i + 1 times (the last one less), x^2 i times, the product once:
///                                2 i + 2. The sum of (2 i + 2) |c_i| x^2i, times |x| and the slope, is at most 0.4656
///
/// GELU with tanh.  x / (1 + exp(-z)) with z = x (c1 + c3 x^2), which is x/2 (1 + tanh(z/2)), has the largest slope
/// 1.12899... at x = 1.4185...
///     z                          x^2, c3, the fused multiply-add and the product round by u each (c1, too, but not c3
///                                and x^2 at once with it): relative error gamma_4
///
/// tanh.  The slope is 1 at 0.
///     |x| >= 0.6                 1 - t with t = 2 / (1 + exp(2|x|)) <= 0.4630: gamma_8 t, 0.45 gamma_2 for the exponent,
///                                and one rounding: less than 9.5 u |tanh x|
///     |x| < 0.6                  x + x^3 P(x^2): P is off by less than 2^-28 |tanh x|; |x^3 P| <= 0.11 |x| has the
///                                roundings of x^2, of five coefficients and steps, and of the product, each of which
///                                counts less than the next: less than gamma_9 of it, below 1u |tanh x|; one rounding
///
/// The figures of the exponential and of the reciprocal are those of the PTX ISA ("ex2", "rcp").
///
/// Output.  One rounding to the output type: u_T (|x| + e) and half of the smallest subnormal of T.
///
/// NaN and infinities.  The formulas are evaluated in float64 as they stand, and the result must be the same.
///
/// Float64.  The reference itself is computed with the unit 2^-53, by the same formulas; its error is added.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <optional>

#include "tessera/detail/host_device.hpp"
#include "tessera/element.hpp"
#include "tessera/epilogue_kind.hpp"
#include "tessera/gemm_problem.hpp"

namespace tessera::test {

inline constexpr double unit_f32 = 0x1p-24;
inline constexpr double eta_f32 = 0x1p-150;
inline constexpr double unit_f64 = 0x1p-53;

/// A reference value, and how much the result in fp32 may differ from it.
struct Bounded {
    double value = 0;
    double error = 0;
};

/// n u / (1 - n u)
constexpr double gamma(double n, double unit) { return n * unit / (1 - n * unit); }

/// Returns the result of one fp32 operation. `exact` is its result for the reference's operands, of magnitude `terms`
/// before cancellation; `propagated` is the effect of the operands' errors.
TESSERA_DETAIL_HOST_DEVICE inline Bounded after_rounding(double exact, double terms, double propagated)
{
    if (!std::isfinite(exact)) {
        return {exact, 0};
    }
    const double before = propagated + 4 * unit_f64 * terms;
    return {exact, before + unit_f32 * (std::abs(exact) + before) + eta_f32};
}

/// How products are summed.
struct Summation {
    int terms = 0;              // products that one tensor-core instruction adds; 0: fused multiply-adds in fp32
    int fraction_bits = 25;     // fraction bits kept of each term
    int result_bits = 23;       // fraction bits kept of the sum
    std::int64_t longest = 0;   // products after which the sum is added to an fp32 sum; 0: never
    double smallest = eta_f32;  // loss per product of numbers that are too small for a relative one
};

/// The tensor cores of compute capability 9.0 and 10.
constexpr Summation tensor_core_summation(InputTypes input) { return {.terms = static_cast<int>(32 / size_of(input))}; }

/// The tensor cores of 9.0 for 8-bit elements.
constexpr Summation hopper_summation(InputTypes input, Fp8Accumulation accumulation)
{
    Summation summation = tensor_core_summation(input);
    if (is_float8(input)) {
        summation.fraction_bits = summation.result_bits = 13;
        summation.longest = accumulation == Fp8Accumulation::two_level ? 128 : 0;
    }
    return summation;
}

/// mma.sync of any GPU. The oldest add up four products at a time; for 8-bit elements, 8.9 is as coarse as 9.0's wgmma.
constexpr Summation mma_sync_summation(InputTypes input, Fp8Accumulation accumulation, F16Accumulation of_f16)
{
    if (input == InputTypes(ElementType::f16) && of_f16 == F16Accumulation::in_f16) {
        return {.terms = 8, .fraction_bits = 23, .result_bits = 11, .longest = 64, .smallest = 0x1p-24};
    }
    return is_float8(input) ? hopper_summation(input, accumulation)
                            : Summation{.terms = 4, .fraction_bits = 23, .result_bits = 23};
}

/// Returns how much of sum |a| |b| the tensor core may lose, relative to it. Also covers fused multiply-adds.
inline double relative_error_of_sum(std::int64_t k, const Summation& summation)
{
    const double chain = gamma(static_cast<double>(k), unit_f32);
    if (summation.terms == 0) {
        return chain;
    }
    const auto instructions = [&](std::int64_t products) {
        return static_cast<double>((products + summation.terms - 1) / summation.terms);
    };
    const double once =
        (summation.terms + 1) * std::ldexp(1.0, -summation.fraction_bits) + std::ldexp(1.0, -summation.result_bits);
    const double loss = once * instructions(summation.longest == 0 ? k : std::min(k, summation.longest));
    const double cut = loss * (1 + loss) / (1 - loss);
    return std::max(chain, cut + gamma(instructions(k), unit_f32) * (1 + cut));
}

/// A sum of products in float64, and the sum of their magnitudes.
struct SumOfProducts {
    double value = 0;
    double magnitude = 0;
};

/// Returns sum a[i] * b[i] for values that are exact in fp32.
SumOfProducts sum_of_products(const double* a, const double* b, std::int64_t k);

/// Returns how much a sum of k products may differ from the reference if a kernel loses at most `relative_error` of the
/// sum of magnitudes, and `smallest` for each product.
TESSERA_DETAIL_HOST_DEVICE inline Bounded bounded(const SumOfProducts& sum, std::int64_t k, double relative_error,
                                                  double smallest = eta_f32)
{
    if (!std::isfinite(sum.value)) {
        return {sum.value, 0};
    }
    const auto count = static_cast<double>(k);
    const double gamma_f64 = gamma(count, unit_f64);
    const double magnitude = sum.magnitude / (1 - gamma_f64);  // the magnitudes were summed in float64, too
    return {sum.value, (relative_error + gamma_f64) * magnitude + count * smallest * (1 + relative_error)};
}

/// The same for a kernel that sums according to `summation`.
inline Bounded bounded(const SumOfProducts& sum, std::int64_t k, const Summation& summation = {})
{
    return bounded(sum, k, relative_error_of_sum(k, summation), summation.smallest);
}

TESSERA_DETAIL_HOST_DEVICE inline double relu(double x) { return x < 0 ? 0 : x; }

TESSERA_DETAIL_HOST_DEVICE inline double gelu(double x)
{
    if (!std::isfinite(x)) {
        return x / 2 * (1 + std::erf(x));
    }
    return x / 2 * std::erfc(-x / std::numbers::sqrt2);  // 1 + erf(x / sqrt 2) without cancellation
}

TESSERA_DETAIL_HOST_DEVICE inline double silu(double x) { return x / (1 + std::exp(-x)); }

TESSERA_DETAIL_HOST_DEVICE inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// z of GELU with tanh, see above.
TESSERA_DETAIL_HOST_DEVICE inline double gelu_tanh_exponent(double x)
{
    return 2 * std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x);
}

TESSERA_DETAIL_HOST_DEVICE inline double gelu_tanh(double x) { return x / (1 + std::exp(-gelu_tanh_exponent(x))); }

/// Returns dividend / (1 + exp(-z)), computed for `x`. @param propagated  the effect of the errors of x and z
TESSERA_DETAIL_HOST_DEVICE inline Bounded of_quotient(double value, double of_reference, double propagated, Bounded x,
                                                      double dividend)
{
    // The reciprocal of a divisor of 2^126 or more is 0. No activation has one for an x above -5.
    const double vanished = x.value - x.error < -5 ? (dividend + 1) * 0x1p-126 : 0;
    const double computed = gamma(8, unit_f32) * (std::abs(value) + propagated) + eta_f32;
    return {value, of_reference + propagated + computed + vanished};
}

TESSERA_DETAIL_HOST_DEVICE inline Bounded activated(Bounded x, Activation activation)
{
    constexpr double u = unit_f32;
    const double largest = std::abs(x.value) + x.error;
    switch (activation) {
        case Activation::none: return x;
        case Activation::relu: return {relu(x.value), x.error};
        case Activation::gelu: {
            const double value = gelu(x.value);
            const double of_reference = 16 * unit_f64 * (1 + x.value * x.value) * std::abs(value);
            return of_quotient(value, of_reference, 1.1290 * x.error + (0.61 + 0.4657) * u * largest, x, largest);
        }
        case Activation::silu: {
            const double value = silu(x.value);
            const double of_reference = 16 * unit_f64 * (1 + std::abs(x.value)) * std::abs(value);
            return of_quotient(value, of_reference, 1.0999 * x.error + 0.2240 * gamma(2, u) * largest, x, largest);
        }
        case Activation::sigmoid: {
            const double value = sigmoid(x.value);
            if (!std::isfinite(x.value)) {
                return {value, 0};
            }
            const double of_reference = 16 * unit_f64 * (1 + std::abs(x.value)) * value;
            return of_quotient(value, of_reference, 0.25 * x.error + 0.2240 * gamma(2, u), x, 1);
        }
        case Activation::gelu_tanh: {
            const double value = gelu_tanh(x.value);
            const double z = gelu_tanh_exponent(x.value);
            const double of_reference = 16 * unit_f64 * (1 + std::abs(z)) * std::abs(value);
            return of_quotient(value, of_reference, 1.1290 * x.error + 0.2240 * gamma(4, u) * largest, x, largest);
        }
        case Activation::tanh: {
            const double value = std::tanh(x.value);
            const double of_reference = 16 * unit_f64 * std::abs(value);
            return {value, of_reference + x.error + gamma(10, u) * (std::abs(value) + x.error) + eta_f32};
        }
    }
    return x;
}

/// The epilogue's operands for one element of D.
struct ElementEpilogue {
    float alpha = 1;
    double row_scale = 1;
    double column_scale = 1;
    float beta = 0;
    double c = 0;
    bool has_bias = false;
    double bias = 0;
    Activation activation = Activation::none;
};

/// Returns the product of two values in fp32.
TESSERA_DETAIL_HOST_DEVICE inline Bounded product_of(Bounded one, Bounded other)
{
    constexpr double unbounded = std::numeric_limits<double>::infinity();
    const double exact = one.value * other.value;
    const double error =
        std::abs(one.value) * other.error + std::abs(other.value) * one.error + one.error * other.error;
    // An unbounded error of a factor is one of the product, also if the other factor is 0.
    const bool is_bounded = one.error < unbounded && other.error < unbounded;
    return after_rounding(exact, std::abs(exact), is_bounded ? error : unbounded);
}

/// Returns act(alpha * product + beta * c + bias) in fp32, before the rounding to the output type.
TESSERA_DETAIL_HOST_DEVICE inline Bounded epilogue_of(Bounded product, const ElementEpilogue& epilogue)
{
    const double alpha = epilogue.alpha;
    const double scaled = alpha * product.value;
    Bounded x = after_rounding(scaled, std::abs(scaled), std::abs(alpha) * product.error);
    if (epilogue.row_scale != 1 || epilogue.column_scale != 1) {
        const double both = epilogue.row_scale * epilogue.column_scale;
        x = product_of(x, after_rounding(both, std::abs(both), 0));
    }
    if (epilogue.beta != 0) {
        const double addend = static_cast<double>(epilogue.beta) * epilogue.c;
        x = after_rounding(x.value + addend, std::abs(x.value) + std::abs(addend), x.error);
    }
    if (epilogue.has_bias) {
        x = after_rounding(x.value + epilogue.bias, std::abs(x.value) + std::abs(epilogue.bias), x.error);
    }
    return activated(x, epilogue.activation);
}

/// The same for exact values such as small integers; returns nothing if fp32 has to round an intermediate value.
inline std::optional<double> exact_epilogue_of(double product, const ElementEpilogue& epilogue)
{
    const auto is_f32 = [](double x) { return static_cast<double>(static_cast<float>(x)) == x; };
    const double scaled = static_cast<double>(epilogue.alpha) * product * epilogue.row_scale * epilogue.column_scale;
    const double added = scaled + (epilogue.beta != 0 ? static_cast<double>(epilogue.beta) * epilogue.c : 0);
    const double biased = added + (epilogue.has_bias ? epilogue.bias : 0);
    if (!is_f32(scaled) || !is_f32(added) || !is_f32(biased)) {
        return std::nullopt;
    }
    return epilogue.activation == Activation::relu ? relu(biased) : biased;
}

/// Returns the largest value that `type` rounds to a finite one. 8-bit types saturate instead.
constexpr double largest_finite(ElementType type)
{
    switch (type) {
        case ElementType::f16: return 65504.0;
        case ElementType::f8e4m3: return 448.0;
        case ElementType::f8e5m2: return 57344.0;
        default: return 0x1.FEp127;
    }
}

constexpr double f16_overflow = 65520;  // the least value that f16 stores as infinity

/// Rounds once to the output type.
TESSERA_DETAIL_HOST_DEVICE inline Bounded stored(Bounded x, ElementType type)
{
    double unit = 0;
    double eta = 0;
    switch (type) {
        case ElementType::f16:
            unit = 0x1p-11;
            eta = 0x1p-25;
            break;
        case ElementType::bf16:
            unit = 0x1p-8;
            eta = 0x1p-134;
            break;
        case ElementType::f8e4m3:
            unit = 0x1p-4;
            eta = 0x1p-10;
            break;
        case ElementType::f8e5m2:
            unit = 0x1p-3;
            eta = 0x1p-17;
            break;
        default: break;
    }
    if (is_float8(type) && !std::isnan(x.value)) {
        const double largest = largest_finite(type);
        if (std::abs(x.value) - x.error >= largest) {
            return {x.value < 0 ? -largest : largest, 0};
        }
        x.value = std::clamp(x.value, -largest, largest);  // brings no two values further apart
    }
    if (type == ElementType::f16 && std::isfinite(x.value)) {
        const double overflow = f16_overflow;
        if (std::abs(x.value) - x.error >= overflow) {
            return {std::copysign(std::numeric_limits<double>::infinity(), x.value), 0};
        }
        x.value = std::clamp(x.value, -overflow, overflow);  // see agrees()
    }
    // The bound itself was computed with some tens of roundings of 2^-53 each.
    return {x.value, (x.error + unit * (std::abs(x.value) + x.error) + eta) * (1 + 128 * unit_f64)};
}

/// Returns true if the reference allows `actual`: the same NaN or infinity, or within the bound.
/// An infinite f16 stands for the least value that f16 stores so.
TESSERA_DETAIL_HOST_DEVICE inline bool agrees(const Bounded& expected, double actual,
                                              ElementType type = ElementType::f32)
{
    if (!std::isfinite(expected.value)) {
        return std::isnan(expected.value) ? std::isnan(actual) : actual == expected.value;
    }
    if (type == ElementType::f16 && std::isinf(actual)) {
        actual = std::copysign(f16_overflow, actual);
    }
    return std::abs(actual - expected.value) <= expected.error;
}

}  // namespace tessera::test
