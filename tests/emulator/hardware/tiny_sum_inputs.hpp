#pragma once

// Sums of tiny products for tiny_sum_probe.cu and for the emulator's test of its results: the same on the GPU and here.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace tessera::tiny_sums {

/// One sum as the device gets it: operands as 32 bytes of K each, the same in all rows of A and all columns of B.
struct Sum {
    std::uint32_t a[8];
    std::uint32_t b[8];
    std::uint32_t c;  ///< an f16 twice, or an f32
};

/// A floating-point format with a bias of 15.
struct Format {
    int mantissa;
    [[nodiscard]] int bytes() const { return mantissa > 2 ? 2 : 1; }
    [[nodiscard]] int smallest() const { return -14 - mantissa; }
};

/// significand * 2^exponent, the exponent not below that of the subnormal numbers.
struct Operand {
    std::uint32_t code = 0;
    int significand = 0;  ///< with `mantissa` fraction bits
    int exponent = 0;
};

inline Operand decode(const Format& format, std::uint32_t code)
{
    const int sign_bit = format.mantissa + 5;
    const auto field = static_cast<int>((code >> format.mantissa) & 31U);
    const auto fraction = static_cast<int>(code & ((1U << format.mantissa) - 1U));
    const int significand = field == 0 ? fraction : fraction | 1 << format.mantissa;
    return {code, (code >> sign_bit & 1U) != 0 ? -significand : significand, (field == 0 ? 1 : field) - 15};
}

/// odd * 2^exponent; false if the format does not have it.
inline bool encode(const Format& format, int odd, int exponent, std::uint32_t& code)
{
    const std::uint32_t sign = odd < 0 ? 1U << (format.mantissa + 5) : 0U;
    int magnitude = std::abs(odd);
    if (magnitude == 0) {
        code = 0;
        return true;
    }
    while (magnitude < 1 << format.mantissa && exponent > format.smallest()) {
        magnitude *= 2;
        --exponent;
    }
    if (exponent < format.smallest() || magnitude >= 2 << format.mantissa) {
        return false;
    }
    const bool subnormal = magnitude < 1 << format.mantissa;
    const int field = subnormal ? 0 : exponent + format.mantissa + 15;
    if (field > 30) {
        return false;
    }
    code = sign | static_cast<std::uint32_t>(field) << format.mantissa |
           (static_cast<std::uint32_t>(magnitude) & ((1U << format.mantissa) - 1U));
    return true;
}

struct Term {
    Operand a, b;
};

struct Case {
    std::string scan;  ///< empty: random
    int j = 0;         ///< 0: without the last term
    std::vector<Term> terms;
    int c_odd = 0, c_exponent = 0;  ///< C = c_odd * 2^c_exponent
};

/// odd * 2^exponent as a product. `first`: the exponent of the factor without `odd`.
inline bool product(const Format& format, int odd, int exponent, int first, Term& term)
{
    std::uint32_t a = 0, b = 0;
    if (!encode(format, 1, first, a) || !encode(format, odd, exponent - first, b)) {
        return false;
    }
    term = {decode(format, a), decode(format, b)};
    return true;
}

/// +-2^-j, with factors as equal as can be.
inline bool power(const Format& format, int j, int sign, Term& term)
{
    return product(format, sign, -j, -(j / 2), term);
}

/// The operands of an kinds.
struct Kinds {
    Format format;  ///< of A and B
    bool f32_result;
    unsigned k;
};

inline void add_scan(std::vector<Case>& cases, const Kinds& kinds, const Case& base, int sign, int copies)
{
    cases.push_back(base);
    for (int j = 20; j <= 48; ++j) {
        Case next = base;
        next.j = j;
        Term term;
        if (!power(kinds.format, j + (copies == 2 ? 1 : 0), sign, term)) {
            continue;
        }
        next.terms.insert(next.terms.end(), static_cast<std::size_t>(copies), term);
        cases.push_back(next);
    }
}

inline std::vector<Case> scans(const Kinds& kinds)
{
    const Format& format = kinds.format;
    std::vector<Case> cases;
    const auto scan = [&](const std::string& name, std::vector<Term> terms, int sign, int copies = 1, int c_odd = 0,
                          int c_exponent = 0) {
        add_scan(cases, kinds, {name, 0, std::move(terms), c_odd, c_exponent}, sign, copies);
    };
    Term tie, other, opposite;
    if (product(format, 1, -25, -12, tie)) {
        scan("2^-25 + 2^-j", {tie}, 1);
        scan("2^-25 + 2 * 2^-(j+1)", {tie}, 1, 2);
        for (int c = 2; c <= 1024; c *= 2) {
            scan("C = " + std::to_string(c) + " * 2^-24, 2^-25 + 2^-j", {tie}, 1, 1, c, -24);
        }
    }
    if (product(format, 1, -25, format.smallest(), tie)) {
        scan("subnormal factor, 2^-25 + 2^-j", {tie}, 1);
    }
    for (int bits = 1; bits <= 10; ++bits) {
        const int odd = (1 << bits) + 1;
        if (product(format, odd, -25, -10, tie)) {
            const bool down = bits == 1;  // 1.5 is a tie to 2, 2.5 too
            scan(std::to_string(odd) + " * 2^-25 " + (down ? "-" : "+") + " 2^-j", {tie}, down ? -1 : 1);
        }
    }
    for (int exponent = -24; exponent <= -8; ++exponent) {
        if (product(format, 1, -25, -12, tie) && product(format, 1, exponent, exponent / 2, other) &&
            product(format, -1, exponent, exponent / 2, opposite)) {
            scan("2^" + std::to_string(exponent) + " - 2^" + std::to_string(exponent) + " + 2^-25 + 2^-j",
                 {other, opposite, tie}, 1);
        }
    }
    for (int exponent = -14; exponent <= 0; ++exponent) {
        if (product(format, 1, exponent - 11, (exponent - 11) / 2, tie)) {
            scan("C = 2^" + std::to_string(exponent) + ", 2^" + std::to_string(exponent - 11) + " + 2^-j", {tie}, 1, 1,
                 1, exponent);
        }
    }
    return cases;
}

inline std::uint64_t next_random(std::uint64_t& state)  // splitmix64 (Steele, Lea, Flood 2014)
{
    std::uint64_t z = state += 0x9E37'79B9'7F4A'7C15;
    z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9;
    z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EB;
    return z ^ (z >> 31);
}

/// Ties and near ties of f16's subnormal numbers with terms near the smallest product.
inline std::vector<Case> random_cases(const Kinds& kinds, int count)
{
    const Format& format = kinds.format;
    std::uint64_t state = 18;
    const auto below = [&state](int bound) { return static_cast<int>((next_random(state) >> 33) % bound); };
    std::vector<Case> cases;
    while (cases.size() < static_cast<std::size_t>(count)) {
        Case sum;
        if (below(4) == 0) {
            sum.c_odd = below(64) - 32;
            sum.c_exponent = -24;
        }
        const int ties = 1 + below(3);
        for (int i = 0; i < ties; ++i) {
            Term term;
            if (product(format, (below(2) * 2 - 1) * (1 + 2 * below(4)), -25, -9 - below(6), term)) {
                sum.terms.push_back(term);
            }
        }
        const int smalls = 1 + below(4);
        for (int i = 0; i < smalls; ++i) {
            Term term;
            if (product(format, below(2) * 2 - 1, -below(20) - 29, -below(4) - 18, term)) {
                sum.terms.push_back(term);
            }
        }
        cases.push_back(sum);
    }
    return cases;
}

inline Sum pack(const Kinds& kinds, const Case& sum, std::size_t number)
{
    Sum packed{};
    const auto bytes = static_cast<std::size_t>(kinds.format.bytes());
    for (std::size_t i = 0; i < sum.terms.size(); ++i) {
        const std::size_t place = (number * 5 + i * 3) % kinds.k;  // 3 is prime to every K: no place twice
        std::memcpy(reinterpret_cast<char*>(packed.a) + place * bytes, &sum.terms[i].a.code, bytes);
        std::memcpy(reinterpret_cast<char*>(packed.b) + place * bytes, &sum.terms[i].b.code, bytes);
    }
    if (kinds.f32_result) {
        float c = static_cast<float>(sum.c_odd);
        for (int e = sum.c_exponent; e < 0; ++e) {
            c *= 0.5F;
        }
        std::memcpy(&packed.c, &c, sizeof c);
    } else {
        std::uint32_t code = 0;
        encode({10}, sum.c_odd, sum.c_exponent, code);
        packed.c = code | code << 16;
    }
    return packed;
}

/// All sums of an instruction: the scans, then the random ones. `scanned`: the number of the former.
inline std::vector<Case> all_cases(const Kinds& kinds, std::size_t& scanned)
{
    std::vector<Case> cases = scans(kinds);
    if (kinds.f32_result) {
        std::erase_if(cases, [](const Case& sum) { return sum.scan.find("C = 2^") == 0; });  // exact in an f32
    }
    scanned = cases.size();
    const std::vector<Case> random = random_cases(kinds, 20000);
    cases.insert(cases.end(), random.begin(), random.end());
    return cases;
}

/// FNV-1a over the results, 4 bytes each.
inline std::uint64_t checksum(const std::vector<std::uint32_t>& values)
{
    std::uint64_t hash = 0xCBF2'9CE4'8422'2325;
    for (const std::uint32_t value : values) {
        for (int byte = 0; byte < 4; ++byte) {
            hash = (hash ^ (value >> (8 * byte) & 0xFFU)) * 0x100'0000'01B3;
        }
    }
    return hash;
}

}  // namespace tessera::tiny_sums
