#include "gemm_case.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <string_view>
#include <type_traits>

#include "parallel.hpp"
#include "signature.hpp"
#include "test_main.hpp"

namespace tessera::test {
namespace {

constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();

enum Salt : std::uint64_t { salt_a = 1, salt_b, salt_c, salt_bias };

/// Returns one of 2^24 numbers between -1 and 1.
float uniform(std::uint64_t bits) { return static_cast<float>(static_cast<double>(bits >> 40U) * 0x1p-23 - 1); }

/// Returns the value of element `index` of operand `salt`.
float random_value(const GemmCase& gemm, std::uint64_t seed, Salt salt, std::int64_t index)
{
    const std::uint64_t bits = hash(seed, salt, static_cast<std::uint64_t>(index));
    if (gemm.data == Data::non_finite && bits % 67 == 0) {
        switch (bits / 67 % 3) {
            case 0: return quiet_nan;
            case 1: return std::numeric_limits<float>::infinity();
            default: return -std::numeric_limits<float>::infinity();
        }
    }
    return uniform(bits);
}

HostArray array_for(const Placement& placement, ElementType type, Guards guards)
{
    const std::int64_t behind = guards == Guards::both_sides ? guard_elements : 0;
    return {type, static_cast<std::size_t>(placement.first + placement.span() + behind)};
}

/// Sets each element of `array` to value(batch, row, column).
template <class Value>
void set_elements(HostArray& array, const Placement& placement, const Value& value)
{
    const std::int64_t batches =
        placement.batch_stride == 0 ? std::min<std::int64_t>(placement.batches, 1) : placement.batches;
    parallel_for(batches * placement.rows, 20 * placement.columns, [&](std::int64_t i) {
        for (std::int64_t column = 0; column < placement.columns; ++column) {
            const std::int64_t batch = i / placement.rows;
            const std::int64_t row = i % placement.rows;
            array.set(placement.index(batch, row, column), value(batch, row, column));
        }
    });
}

std::int64_t bias_size(const GemmCase& gemm)
{
    switch (gemm.bias) {
        case BiasAxis::per_row: return gemm.m;
        case BiasAxis::per_column: return gemm.n;
        case BiasAxis::none: break;
    }
    return 0;
}

std::string describe(const char* name, const Layout& layout)
{
    return fmt::format(", {} {}{}{}{}", name, layout.row_major ? "row-major" : "column-major",
                       layout.padding != 0 ? fmt::format(" padded by {}", layout.padding) : "",
                       layout.offset != 0 ? fmt::format(" at offset {}", layout.offset) : "",
                       layout.shared ? " shared" : "");
}

/// The operands of one matrix of D, widened to float64, with k contiguous.
struct WideOperands {
    std::vector<double> a;  // (m, k)
    std::vector<double> b;  // (n, k)
};

WideOperands widen(const GemmCase& gemm, const GemmData& data, std::int64_t batch)
{
    const auto widened = [&](std::int64_t lines, const auto& value) {
        std::vector<double> wide(static_cast<std::size_t>(lines * gemm.k));
        parallel_for(lines, 20 * gemm.k, [&](std::int64_t line) {
            for (std::int64_t k = 0; k < gemm.k; ++k) {
                wide[static_cast<std::size_t>(line * gemm.k + k)] = value(line, k);
            }
        });
        return wide;
    };
    return {
        widened(gemm.m, [&](std::int64_t i, std::int64_t k) { return data.a.get(data.a_place.index(batch, i, k)); }),
        widened(gemm.n, [&](std::int64_t j, std::int64_t k) { return data.b.get(data.b_place.index(batch, k, j)); })};
}

/// Calls sum(a_row, b_column, depth) for every element of D that is not a copy of another one, in order.
template <class Sum>
auto sum_all(const GemmCase& gemm, const GemmData& data, const Sum& sum)
{
    using Result = std::invoke_result_t<Sum, const double*, const double*, std::int64_t>;
    const std::int64_t depth = gemm.depth();
    std::vector<Result> sums(static_cast<std::size_t>(gemm.distinct() * gemm.m * gemm.n));
    for (std::int64_t batch = 0; batch < gemm.distinct() && depth > 0; ++batch) {
        const WideOperands wide = widen(gemm, data, batch);
        parallel_for(gemm.m, gemm.n * 2 * depth, [&](std::int64_t row) {
            for (std::int64_t column = 0; column < gemm.n; ++column) {
                sums[static_cast<std::size_t>((batch * gemm.m + row) * gemm.n + column)] =
                    sum(wide.a.data() + row * gemm.k, wide.b.data() + column * gemm.k, depth);
            }
        });
    }
    return sums;
}

/// The bits of `value` rounded to `type`, one of the types of D, as kernels round it: 8-bit types saturate.
std::uint32_t rounded_bits(ElementType type, float value)
{
    return type == ElementType::f8e5m2 ? f8e5m2(value).bits : HostArray::narrowed(type, value);
}

/// A matrix that a launch writes.
struct WrittenMatrix {
    std::string_view name;
    const Placement& place;
    const HostArray& before;
    bool may_be_poison;  // a NaN from C may return
};

WrittenMatrix d_of(const GemmCase& gemm, const GemmData& data)
{
    return {"D", data.d_place, data.d, gemm.addend == Addend::in_place};
}

ElementEpilogue epilogue_at(const GemmCase& gemm, const GemmData& data, std::int64_t batch, std::int64_t row,
                            std::int64_t column)
{
    ElementEpilogue epilogue;
    epilogue.alpha = gemm.alpha * (gemm.has_row_scales() ? 1 : gemm.scale_a.value_or(1)) *
                     (gemm.has_column_scales() ? 1 : gemm.scale_b.value_or(1));
    if (gemm.alpha != 0 && gemm.has_row_scales()) {
        epilogue.row_scale = data.scales.get(static_cast<std::size_t>(GemmData::first_scale_vector + row));
    }
    if (gemm.alpha != 0 && gemm.has_column_scales()) {
        epilogue.column_scale =
            data.scales.get(static_cast<std::size_t>(GemmData::first_scale_vector + gemm.m + column));
    }
    epilogue.activation = gemm.activation;
    if (gemm.addend != Addend::none && gemm.beta != 0) {
        epilogue.beta = gemm.beta;
        epilogue.c = gemm.addend == Addend::in_place ? data.d.get(data.d_place.index(batch, row, column))
                                                     : data.c.get(data.c_place.index(batch, row, column));
    }
    if (gemm.bias != BiasAxis::none) {
        epilogue.has_bias = true;
        const std::int64_t index = gemm.bias == BiasAxis::per_row ? row : column;
        epilogue.bias = data.bias.get(static_cast<std::size_t>(guard_elements + gemm.bias_offset + index));
    }
    return epilogue;
}

/// A column of A*B that an element of D comes from.
template <class Sum>
struct Term {
    Sum sum;
    ElementEpilogue epilogue;
};

/// Calls check(term, bits) or, for gated pairs, check(gate, bits, &up) for every element that is not a copy of another one, with its element of `sums`;
/// compares copies and the surrounding memory. Describes the first wrong element, or else the first change around them.
template <class Sum, class Check>
std::optional<std::string> check_elements(const GemmCase& gemm, const GemmData& data, const WrittenMatrix& written,
                                          const std::vector<Sum>& sums, const HostArray& result, const Check& check)
{
    const Placement& place = written.place;
    const auto check_one = [&](std::int64_t batch, std::int64_t row, std::int64_t column) -> std::string {
        const std::uint32_t bits = result.bits(place.index(batch, row, column));
        if (batch >= gemm.distinct()) {
            return bits == result.bits(place.index(0, row, column)) ? "" : "differs from matrix 0 of the same inputs";
        }
        if (bits == poison_bits(result.type()) && !written.may_be_poison) {
            return "was never written";
        }
        const auto term = [&](std::int64_t of_b) {
            return Term<Sum>{sums[static_cast<std::size_t>((batch * gemm.m + row) * gemm.n + of_b)],
                             epilogue_at(gemm, data, batch, row, of_b)};
        };
        if (gemm.gating == Gating::none) {
            return check(term(column), bits, nullptr);
        }
        const bool interleaved = gemm.gating == Gating::interleaved;
        const Term<Sum> up = term(interleaved ? 2 * column + 1 : column + gemm.n / 2);
        return check(term(interleaved ? 2 * column : column), bits, &up);
    };
    const std::int64_t columns = place.columns;

    constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
    std::atomic<std::int64_t> first_wrong = none;
    HostArray expected = written.before;  // with the current elements, so that only a change around them differs
    parallel_for(gemm.batches * gemm.m, 50 * gemm.n, [&](std::int64_t i) {
        const std::int64_t batch = i / gemm.m;
        const std::int64_t row = i % gemm.m;
        for (std::int64_t column = 0; column < columns; ++column) {
            if (!check_one(batch, row, column).empty()) {
                const std::int64_t element = i * columns + column;
                std::int64_t known = first_wrong.load();
                while (element < known && !first_wrong.compare_exchange_weak(known, element)) {
                }
                return;
            }
            const std::size_t index = place.index(batch, row, column);
            expected.set_bits(index, result.bits(index));
        }
    });
    if (const std::int64_t wrong = first_wrong.load(); wrong != none) {
        const std::int64_t batch = wrong / columns / gemm.m;
        const std::int64_t row = wrong / columns % gemm.m;
        const std::int64_t column = wrong % columns;
        return fmt::format("{}({}, {}) of matrix {}: {}", written.name, row, column, batch,
                           check_one(batch, row, column));
    }
    const auto [touched, was] = std::mismatch(result.bytes().begin(), result.bytes().end(), expected.bytes().begin());
    if (touched != result.bytes().end()) {
        const auto index = (touched - result.bytes().begin()) / static_cast<std::ptrdiff_t>(size_of(result.type()));
        return fmt::format("element {} from {}'s start, which is outside of {}, was overwritten", index - place.first,
                           written.name, written.name);
    }
    return std::nullopt;
}

}  // namespace

std::string GemmCase::describe() const
{
    const std::string input_name = input.a == input.b ? std::string(to_string(input.a))
                                                      : fmt::format("{} x {}", to_string(input.a), to_string(input.b));
    std::string text =
        fmt::format("{}x{}x{} (MxNxK), {} batches, {} -> {}", m, n, k, batches, input_name, to_string(output));
    text += test::describe("A", a) + test::describe("B", b) + test::describe("D", d);
    text += fmt::format(", alpha {}, beta {}", alpha, beta);
    if (scale_a) {
        text += fmt::format(", A's scale{} {}", row_scales ? "s per row from" : "", *scale_a);
    }
    if (scale_b) {
        text += fmt::format(", B's scale{} {}", column_scales ? "s per column from" : "", *scale_b);
    }
    if (scale_d) {
        text += fmt::format(", D's scale {}", *scale_d);
    }
    if (amax_d) {
        text += fmt::format(", amax from {}", *amax_d);
    }
    if (addend != Addend::none) {
        text += addend == Addend::in_place ? ", C is D" : test::describe("C", c);
    }
    if (bias != BiasAxis::none) {
        text += fmt::format(", {} bias per {} at offset {}", to_string(bias_type),
                            bias == BiasAxis::per_row ? "row" : "column", bias_offset);
    }
    if (gating != Gating::none) {
        text += fmt::format(", gated pairs {}", to_string(gating));
    }
    if (pre_activation) {
        text += test::describe("pre-activation", *pre_activation);
    }
    if (is_float8(input) && fp8_accumulation == Fp8Accumulation::fast) {
        text += ", fast accumulation";
    }
    if (allows_f16_sums()) {
        text += ", sums in f16 allowed";
    }
    constexpr const char* data_names[] = {"random", "signature", "non-finite", "one large"};
    return text + fmt::format(", {}, {} data", to_string(activation), data_names[static_cast<int>(data)]);
}

Placement place(const Layout& layout, std::int64_t rows, std::int64_t columns, std::int64_t batches, std::int64_t first)
{
    Placement placement;
    placement.rows = rows;
    placement.columns = columns;
    placement.batches = batches;
    placement.row_major = layout.row_major;
    placement.leading_dimension = std::max<std::int64_t>(placement.vector_size(), 1) + layout.padding;
    placement.batch_stride =
        layout.shared ? 0
                      : std::max<std::int64_t>(placement.vectors(), 1) * placement.leading_dimension + layout.batch_gap;
    placement.first = first + layout.offset;
    return placement;
}

GemmData GemmData::make(const GemmCase& gemm, Guards guards, std::uint64_t seed)
{
    const Placement a_place = place(gemm.a, gemm.m, gemm.k, gemm.batches);
    const Placement b_place = place(gemm.b, gemm.k, gemm.n, gemm.batches);
    const Placement d_place = place(gemm.d, gemm.m, gemm.d_columns(), gemm.batches);
    const bool separate = gemm.addend == Addend::separate;
    const Placement c_place = separate ? place(gemm.c, gemm.m, gemm.n, gemm.batches) : Placement{};
    Layout x_layout = gemm.pre_activation.value_or(Layout{});
    x_layout.row_major = gemm.d.row_major;
    const Placement x_place = gemm.pre_activation ? place(x_layout, gemm.m, gemm.n, gemm.batches) : Placement{};
    const std::int64_t bias_elements = bias_size(gemm);
    const std::int64_t behind = guards == Guards::both_sides ? guard_elements : 0;
    GemmData data{a_place,
                  b_place,
                  c_place,
                  d_place,
                  array_for(a_place, gemm.input.a, guards),
                  array_for(b_place, gemm.input.b, guards),
                  separate ? array_for(c_place, gemm.addend_type(), guards) : HostArray(gemm.addend_type(), 0),
                  HostArray(gemm.bias_type,
                            gemm.bias == BiasAxis::none
                                ? 0
                                : static_cast<std::size_t>(guard_elements + gemm.bias_offset + bias_elements + behind)),
                  HostArray(ElementType::f32, static_cast<std::size_t>(GemmData::first_scale_vector + gemm.m + gemm.n)),
                  array_for(d_place, gemm.output, Guards::both_sides),
                  x_place,
                  gemm.pre_activation ? array_for(x_place, gemm.addend_type(), Guards::both_sides)
                                      : HostArray(gemm.addend_type(), 0)};

    const bool exact = gemm.data == Data::signature;
    const bool small = exact && gemm.allows_f16_sums();
    const bool large = gemm.data == Data::one_large;
    set_elements(data.a, a_place, [&](std::int64_t batch, std::int64_t row, std::int64_t k) {
        return gemm.alpha == 0 ? quiet_nan
               : large         ? (k == 0 ? 128.0F : 1.0F)
               : small         ? signature_a_of_f16_sums(row + 7 * batch, k)
               : exact         ? signature_a_in(gemm.input.a, row + 7 * batch, k)
                               : random_value(gemm, seed, salt_a, (batch * gemm.m + row) * gemm.k + k);
    });
    set_elements(data.b, b_place, [&](std::int64_t batch, std::int64_t k, std::int64_t column) {
        return gemm.alpha == 0 ? quiet_nan
               : large         ? (k == 0 ? 128.0F : 1.0F)
               : small         ? signature_b_of_f16_sums(k, column + 11 * batch)
               : exact         ? signature_b_in(gemm.input.b, k, column + 11 * batch)
                               : random_value(gemm, seed, salt_b, (batch * gemm.k + k) * gemm.n + column);
    });
    const auto c_value = [&](std::int64_t batch, std::int64_t row, std::int64_t column) {
        const std::int64_t of_batch = gemm.replicated() ? 0 : batch;
        return gemm.beta == 0 ? quiet_nan
               : exact        ? signature_c(row + of_batch, column)
                              : random_value(gemm, seed, salt_c, (of_batch * gemm.m + row) * gemm.n + column);
    };
    if (separate) {
        set_elements(data.c, c_place, c_value);
    } else if (gemm.addend == Addend::in_place && gemm.beta != 0) {
        set_elements(data.d, d_place, c_value);
    }
    if (gemm.alpha != 0) {
        data.scales.set(0, gemm.scale_a.value_or(quiet_nan));
        data.scales.set(1, gemm.scale_b.value_or(quiet_nan));
        // Powers of two keep exact data exact.
        const auto multiple = [&](float scale, std::int64_t i) {
            return exact ? std::ldexp(scale, static_cast<int>(i % 3) - 1)
                         : scale * (1.0F + 0.3F * static_cast<float>(i % 7));
        };
        for (std::int64_t i = 0; i < gemm.m; ++i) {
            data.scales.set(static_cast<std::size_t>(GemmData::first_scale_vector + i),
                            multiple(gemm.scale_a.value_or(quiet_nan), i));
        }
        for (std::int64_t j = 0; j < gemm.n; ++j) {
            data.scales.set(static_cast<std::size_t>(GemmData::first_scale_vector + gemm.m + j),
                            multiple(gemm.scale_b.value_or(quiet_nan), j));
        }
    }
    data.scales.set(2, gemm.scale_d.value_or(quiet_nan));
    data.scales.set(3, gemm.amax_d.value_or(quiet_nan));
    for (std::int64_t i = 0; i < bias_elements; ++i) {
        data.bias.set(static_cast<std::size_t>(guard_elements + gemm.bias_offset + i),
                      exact ? signature_c(i, 1) : random_value(gemm, seed, salt_bias, i));
    }
    return data;
}

Reference::Reference(const GemmCase& gemm, const GemmData& data)
    : gemm_(gemm), data_(data), sums_(sum_all(gemm, data, sum_of_products))
{}

struct Reference::Output {
    WrittenMatrix matrix;
    Activation activation;
    std::optional<float> scale;
};

std::optional<std::string> Reference::find_wrong_element(const HostArray& result, const Summation& summation) const
{
    return find_wrong_element({d_of(gemm_, data_), gemm_.activation, gemm_.scale_d}, result, summation);
}

std::optional<std::string> Reference::find_wrong_pre_activation(const HostArray& result,
                                                                const Summation& summation) const
{
    const WrittenMatrix matrix{"pre-activation", data_.pre_activation_place, data_.pre_activation, false};
    return find_wrong_element({matrix, Activation::none, std::nullopt}, result, summation);
}

std::optional<std::string> Reference::find_wrong_element(const Output& output, const HostArray& result,
                                                         const Summation& summation) const
{
    const ElementType type = result.type();
    const bool exact = gemm_.data == Data::signature && gemm_.k <= longest_exact_k && gemm_.gating == Gating::none &&
                       (output.activation == Activation::none || output.activation == Activation::relu);
    using Column = Term<SumOfProducts>;
    const auto check = [&](Column term, std::uint32_t bits, const Column* up) -> std::string {
        auto& [sum, epilogue] = term;
        epilogue.activation = output.activation;
        const double actual = HostArray::widened(type, bits);
        if (const auto value = exact ? exact_epilogue_of(sum.value, epilogue) : std::nullopt) {
            const float scaled = static_cast<float>(*value) * output.scale.value_or(1);
            const double expected = HostArray::widened(type, rounded_bits(type, scaled));
            return actual == expected ? std::string() : fmt::format("is {}, but must be exactly {}", actual, expected);
        }
        Bounded before = epilogue_of(bounded(sum, gemm_.depth(), summation), epilogue);
        if (up != nullptr) {
            ElementEpilogue linear = up->epilogue;
            linear.activation = Activation::none;
            before = product_of(before, epilogue_of(bounded(up->sum, gemm_.depth(), summation), linear));
        }
        if (output.scale) {
            const double scale = *output.scale;
            before =
                after_rounding(scale * before.value, std::abs(scale * before.value), std::abs(scale) * before.error);
        }
        if (!is_float8(type) && std::abs(before.value) + before.error > largest_finite(type) &&
            std::isfinite(before.value)) {
            return "the test's data overflow the output type";
        }
        const Bounded expected = stored(before, type);
        return agrees(expected, actual, type)
                   ? std::string()
                   : fmt::format("is {}, but must be {} +- {}", actual, expected.value, expected.error);
    };
    return check_elements(gemm_, data_, output.matrix, sums_, result, check);
}

std::optional<std::string> Reference::find_wrong_amax(float result, const Summation& summation) const
{
    // The maximum of the bounds: each element's magnitude is within its own.
    double lowest = *gemm_.amax_d;
    double highest = *gemm_.amax_d;
    bool has_nan = std::isnan(lowest);
    for (std::int64_t batch = 0; batch < gemm_.distinct(); ++batch) {
        for (std::int64_t row = 0; row < gemm_.m; ++row) {
            const auto finished = [&](std::int64_t column, Activation activation) {
                const SumOfProducts& sum = sums_[static_cast<std::size_t>((batch * gemm_.m + row) * gemm_.n + column)];
                ElementEpilogue epilogue = epilogue_at(gemm_, data_, batch, row, column);
                epilogue.activation = activation;
                return epilogue_of(bounded(sum, gemm_.depth(), summation), epilogue);
            };
            const std::int64_t stride = gemm_.gating == Gating::interleaved ? 2 : 1;
            const std::int64_t to_up = gemm_.gating == Gating::interleaved ? 1 : gemm_.n / 2;
            for (std::int64_t column = 0; column < data_.d_place.columns; ++column) {
                Bounded value = finished(column * stride, gemm_.activation);
                if (gemm_.gating != Gating::none) {
                    value = product_of(value, finished(column * stride + to_up, Activation::none));
                }
                has_nan = has_nan || std::isnan(value.value);
                lowest = std::max(lowest, std::abs(value.value) - value.error);
                highest = std::max(highest, std::abs(value.value) + value.error);
            }
        }
    }
    const bool right = has_nan ? std::isnan(result) : lowest <= result && result <= highest;
    return right ? std::nullopt
                 : std::optional(fmt::format("amax is {}, but must be {}", result,
                                             has_nan ? "NaN" : fmt::format("from {} to {}", lowest, highest)));
}

std::optional<std::string> find_wrong_element(const GemmCase& gemm, const GemmData& data, const HostArray& result,
                                              const Summation& summation)
{
    return Reference(gemm, data).find_wrong_element(result, summation);
}

std::optional<std::string> find_other_than_fma_chain(const GemmCase& gemm, const GemmData& data,
                                                     const HostArray& result)
{
    const auto chain = [](const double* a, const double* b, std::int64_t k) {
        float sum = 0;
        for (std::int64_t i = 0; i < k; ++i) {
            sum = std::fma(static_cast<float>(a[i]), static_cast<float>(b[i]), sum);
        }
        return sum;
    };
    const auto check = [&](const Term<float>& term, std::uint32_t bits, const Term<float>* /*up*/) -> std::string {
        const auto& [sum, epilogue] = term;
        float value = epilogue.alpha * (sum + 0.0F);
        if (epilogue.beta != 0) {
            value = std::fma(epilogue.beta, static_cast<float>(epilogue.c), value);
        }
        if (epilogue.has_bias) {
            value += static_cast<float>(epilogue.bias);
        }
        if (epilogue.activation == Activation::relu) {
            value = value < 0 ? 0.0F : value;
        }
        const std::uint32_t expected = rounded_bits(gemm.output, value * gemm.scale_d.value_or(1));
        return bits == expected ? std::string()
                                : fmt::format("has the bits {:#x}, but must have {:#x}", bits, expected);
    };
    return check_elements(gemm, data, d_of(gemm, data), sum_all(gemm, data, chain), result, check);
}

bool inputs_are_aligned(const GemmCase& gemm, const GemmData& data, std::size_t alignment)
{
    const auto is_aligned = [&](const Placement& place) {
        const auto multiple = [&](std::int64_t elements) {
            return static_cast<std::size_t>(elements) * size_of(gemm.input) % alignment == 0;
        };
        return multiple(place.first) && (place.vectors() <= 1 || multiple(place.leading_dimension)) &&
               (gemm.batches <= 1 || multiple(place.batch_stride));
    };
    return is_aligned(data.a_place) && is_aligned(data.b_place);
}

}  // namespace tessera::test
