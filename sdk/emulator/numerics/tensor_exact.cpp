// The exact path of the floating-point kinds: which sums an instruction consists of.

#include <algorithm>
#include <array>
#include <bit>
#include <stdexcept>
#include <string>

#include "exact_number.hpp"
#include "exact_sum.hpp"
#include "float_ops.hpp"
#include "tensor_sum.hpp"

namespace tessera::emulator::numerics {
namespace {

using detail::longest_k;
using detail::Sum;

void check_shapes(const ExactA& a, const ExactB& b)
{
    if (a.k() != b.k() || a.k() > longest_k) {
        throw std::invalid_argument("A has K = " + std::to_string(a.k()) + " and B has K = " + std::to_string(b.k()) +
                                    ": they must be equal and at most " + std::to_string(longest_k));
    }
}

std::array<std::uint16_t, longest_k> in_order()
{
    std::array<std::uint16_t, longest_k> order{};
    for (std::size_t k = 0; k < longest_k; ++k) {
        order[k] = static_cast<std::uint16_t>(k);
    }
    return order;
}

/// The chain of sums of one instruction.
void run_chain(Sum sum, std::size_t k)
{
    static const std::array<std::uint16_t, longest_k> order = in_order();
    const std::size_t step = sum.model->products_per_sum;
    for (std::size_t first = 0; first < k; first += step) {
        sum.order = order.data() + first;
        sum.count = std::min(step, k - first);
        sum_usual(sum);
        sum.accumulate = true;
        sum.scale_shift = 0;
    }
}

/// See SumModel::through_f16.
void run_through_f16(Sum sum, const Accumulation& how)
{
    const std::size_t k = sum.a->k();
    const std::size_t m = sum.a->m();
    const std::size_t n = sum.b->n();
    std::vector<float> products(m * n);
    std::array<std::uint16_t, longest_k> order{};
    const auto first_pairs = std::stable_partition(
        order.begin(),
        [&order, k] {
            const auto all = in_order();
            return std::copy(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(k), order.begin());
        }(),
        [](std::uint16_t index) { return index % 4 < 2; });
    const auto half = static_cast<std::size_t>(first_pairs - order.begin());
    float* const d = sum.d;
    const std::size_t ldd = sum.ldd;
    sum.d = products.data();
    sum.ldd = n;
    sum.accumulate = false;
    sum.order = order.data();
    sum.count = half;
    sum_usual(sum);
    sum.accumulate = true;
    sum.order = order.data() + half;
    sum.count = k - half;
    sum_usual(sum);
    const bool is_f16 = sum.model->result == SumModel::Result::f16_nearest;
    for (std::size_t row = 0; row < m; ++row) {
        for (std::size_t column = 0; column < n; ++column) {
            float& out = d[row * ldd + column];
            const float total = add_rn(how.accumulate ? out : 0.0F, products[row * n + column]);
            out = is_f16 ? float_from_f16(f16_from_float(total)) : total;
        }
    }
}

}  // namespace

SumModel sum_model(TensorUnit unit, Format a, Accumulator accumulator, std::size_t k)
{
    const bool is_fp8 = a == Format::e4m3 || a == Format::e5m2;
    SumModel model;
    model.result = accumulator == Accumulator::f16 ? SumModel::Result::f16_nearest : SumModel::Result::f32_cut;
    // Of a unit with 25 fraction bits, this is -133, or -21 for f16; both were measured on an H200.
    const auto set_bits = [&model](int fraction_bits) {
        constexpr int more_bits = 18;
        const int smallest_normal = model.result == SumModel::Result::f16_nearest ? -14 : -126;
        model.fraction_bits = fraction_bits;
        model.smallest_exponent = smallest_normal - (fraction_bits - more_bits);
    };
    const auto keep_13_bits = [&model] {
        model.fraction_bits = 13;
        if (model.result == SumModel::Result::f32_cut) {
            model.result = SumModel::Result::f32_cut_to_13;
        }
    };
    set_bits(25);
    switch (unit) {
        case TensorUnit::volta_mma:
            set_bits(23);
            model.products_per_sum = 4;
            break;
        case TensorUnit::turing_mma:
            set_bits(24);
            model.products_per_sum = 8;
            break;
        case TensorUnit::ampere_mma:
        case TensorUnit::ada_mma:
            set_bits(24);
            model.products_per_sum = is_fp8 ? 16 : a == Format::tf32 ? 4 : 8;
            if (is_fp8) {
                keep_13_bits();
            }
            break;
        case TensorUnit::hopper_mma: model.through_f16 = is_fp8; break;
        case TensorUnit::hopper_wgmma:
            if (is_fp8) {
                keep_13_bits();
            }
            break;
        case TensorUnit::blackwell: break;
    }
    model.products_per_sum = std::min(model.products_per_sum, std::max<std::size_t>(k, 1));
    return model;
}

void multiply_exact(const SumModel& model, const ExactA& a, const ExactB& b, float* d, std::size_t ldd,
                    const Accumulation& how)
{
    check_shapes(a, b);
    const Sum sum{&model, &a, &b, nullptr, 0, nullptr, nullptr, d, ldd, how.accumulate, how.scale_shift};
    if (model.through_f16) {
        run_through_f16(sum, how);
    } else {
        run_chain(sum, a.k());
    }
}

void multiply_exact_mxf8(const SumModel& model, const ExactA& a, const ExactB& b, const std::uint8_t* scale_a,
                         const std::uint8_t* scale_b, float* d, std::size_t ldd, const Accumulation& how)
{
    check_shapes(a, b);
    std::vector<std::int16_t> rows(a.m());
    std::vector<std::int16_t> columns(b.n() + detail::group);
    constexpr int bias = 127;
    for (std::size_t m = 0; m < a.m(); ++m) {
        rows[m] = static_cast<std::int16_t>(scale_a[m] - bias);
    }
    for (std::size_t n = 0; n < b.n(); ++n) {
        columns[n] = static_cast<std::int16_t>(scale_b[n] - bias);
    }
    run_chain({&model, &a, &b, nullptr, 0, rows.data(), columns.data(), d, ldd, how.accumulate, how.scale_shift},
              a.k());
    constexpr std::uint8_t nan_scale = 0xFF;
    for (std::size_t m = 0; m < a.m(); ++m) {
        for (std::size_t n = 0; n < b.n(); ++n) {
            if (scale_a[m] == nan_scale || scale_b[n] == nan_scale) {
                d[m * ldd + n] = std::bit_cast<float>(canonical_nan_f32);
            }
        }
    }
}

}  // namespace tessera::emulator::numerics
