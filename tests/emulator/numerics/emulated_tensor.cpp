#include <array>
#include <bit>
#include <cstring>

#include "emulated_instructions.hpp"
#include "numerics/tensor_sum.hpp"

namespace tessera::probe {
namespace {

namespace numerics = emulator::numerics;

numerics::Format format_of(Kind kind)
{
    switch (kind) {
        case Kind::f16: return numerics::Format::f16;
        case Kind::bf16: return numerics::Format::bf16;
        case Kind::tf32: return numerics::Format::tf32;
        case Kind::e5m2: return numerics::Format::e5m2;
        default: break;
    }
    return numerics::Format::e4m3;
}

/// One instance's codes of a problem.
struct Codes {
    const std::uint64_t* a;
    const std::uint64_t* b;
    const std::uint64_t* c;
};

std::size_t size(int value) { return static_cast<std::size_t>(value); }

std::vector<std::uint64_t> emulate_float(const Case& test, const Codes& codes, bool negate_a, bool accumulate)
{
    const bool is_wgmma = test.name[0] == 'w';
    const auto unit = is_wgmma ? numerics::TensorUnit::hopper_wgmma : numerics::TensorUnit::hopper_mma;
    const auto accumulator = test.d == Kind::f16 ? numerics::Accumulator::f16 : numerics::Accumulator::f32;
    const std::size_t m = size(test.m);
    const std::size_t n = size(test.n);
    const std::size_t k = size(test.k);
    const std::vector<unsigned char> a = pack({codes.a, codes.a + m * k}, test.a);
    const std::vector<unsigned char> b = pack({codes.b, codes.b + n * k}, test.b);
    const numerics::ExactA exact_a({format_of(test.a), a.data(), test.k, 1, negate_a}, m, k);
    const numerics::ExactB exact_b({format_of(test.b), b.data(), test.k, 1, false}, n, k);
    std::vector<float> d(m * n);
    for (std::size_t i = 0; i < d.size(); ++i) {
        const auto code = static_cast<std::uint32_t>(codes.c[i]);
        d[i] = test.d == Kind::f16 ? numerics::float_from_f16(static_cast<std::uint16_t>(code))
                                   : std::bit_cast<float>(code);
    }
    numerics::multiply_exact(numerics::sum_model(unit, format_of(test.a), accumulator, k), exact_a, exact_b, d.data(),
                             n, {accumulate, 0});
    std::vector<std::uint64_t> out(m * n);
    for (std::size_t i = 0; i < d.size(); ++i) {
        out[i] = test.d == Kind::f16 ? numerics::f16_from_float(d[i]) : std::bit_cast<std::uint32_t>(d[i]);
    }
    return out;
}

std::int16_t integer_element(Kind kind, std::uint64_t code)
{
    return kind == Kind::s8 ? static_cast<std::int8_t>(code) : static_cast<std::int16_t>(code);
}

std::vector<std::uint64_t> emulate_integer(const Case& test, const Codes& codes, bool saturate)
{
    const std::size_t m = size(test.m);
    const std::size_t n = size(test.n);
    const std::size_t k = size(test.k);
    std::vector<std::int16_t> a(m * k);
    std::vector<std::int16_t> b(k * n);
    std::vector<std::int32_t> d(m * n);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = integer_element(test.a, codes.a[i]);
    }
    for (std::size_t i = 0; i < b.size(); ++i) {
        b[i % k * n + i / k] = integer_element(test.b, codes.b[i]);
    }
    for (std::size_t i = 0; i < d.size(); ++i) {
        d[i] = static_cast<std::int32_t>(codes.c[i]);
    }
    numerics::multiply_integer(m, n, k, a.data(), b.data(), d.data(), n, true, saturate);
    return {d.begin(), d.end()};
}

std::vector<std::uint64_t> emulate_f64(const Case& test, const Codes& codes)
{
    const std::size_t m = size(test.m);
    const std::size_t n = size(test.n);
    const std::size_t k = size(test.k);
    std::vector<double> a(m * k);
    std::vector<double> b(k * n);
    std::vector<double> d(m * n);
    for (std::size_t i = 0; i < a.size(); ++i) {
        a[i] = std::bit_cast<double>(codes.a[i]);
    }
    for (std::size_t i = 0; i < b.size(); ++i) {
        b[i % k * n + i / k] = std::bit_cast<double>(codes.b[i]);
    }
    std::memcpy(d.data(), codes.c, d.size() * sizeof(double));
    numerics::multiply_f64(m, n, k, a.data(), b.data(), d.data(), n);
    std::vector<std::uint64_t> out(d.size());
    std::memcpy(out.data(), d.data(), d.size() * sizeof(double));
    return out;
}

}  // namespace

std::vector<unsigned char> emulate(const Case& test, const Problem& problem, int instances)
{
    const std::string_view name(test.name);
    const bool negate_a = name.find("negated") != name.npos;
    const bool accumulate = name.find("without D") == name.npos;
    const bool saturate = name.find("satfinite") != name.npos;
    std::vector<std::uint64_t> all;
    for (int instance = 0; instance < instances; ++instance) {
        const Codes codes{problem.a.data() + size(instance * test.m * test.k),
                          problem.b.data() + size(instance * test.n * test.k),
                          problem.c.data() + size(instance * test.m * test.n)};
        std::vector<std::uint64_t> d;
        if (test.d == Kind::s32) {
            d = emulate_integer(test, codes, saturate);
        } else if (test.d == Kind::f64) {
            d = emulate_f64(test, codes);
        } else {
            d = emulate_float(test, codes, negate_a, accumulate);
        }
        all.insert(all.end(), d.begin(), d.end());
    }
    return pack(all, test.d);
}

}  // namespace tessera::probe
