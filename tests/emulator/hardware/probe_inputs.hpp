#pragma once

// Inputs of the hardware probes: the same bits on the GPU and in the emulator's tests, from one portable generator.
// Everything is a function of (case name, input class), so the checksum tables need no stored inputs.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::probe {

constexpr std::uint64_t fnv_start = 0xCBF2'9CE4'8422'2325;

/// FNV-1a with 64 bits over the bytes given.
inline std::uint64_t fnv1a(const void* data, std::size_t bytes, std::uint64_t hash = fnv_start)
{
    const auto* const byte = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < bytes; ++i) {
        hash = (hash ^ byte[i]) * 0x100'0000'01B3;
    }
    return hash;
}

/// splitmix64 (Steele, Lea, Flood 2014).
class Generator {
public:
    explicit Generator(std::uint64_t seed) : state_(seed) {}

    std::uint64_t next()
    {
        std::uint64_t z = state_ += 0x9E37'79B9'7F4A'7C15;
        z = (z ^ (z >> 30)) * 0xBF58'476D'1CE4'E5B9;
        z = (z ^ (z >> 27)) * 0x94D0'49BB'1331'11EB;
        return z ^ (z >> 31);
    }
    /// 0 .. bound-1
    std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>((next() >> 32) * bound >> 32); }
    bool one_in(std::uint32_t n) { return below(n) == 0; }

private:
    std::uint64_t state_;
};

/// A format for the probes: the sign is the top bit, then exponent, then mantissa.
struct Bits {
    int mantissa;
    int exponent;
    int bias;
    bool ieee;  ///< the top exponent holds infinity and NaN
    int pad;    ///< low bits of the cell below the mantissa (13 for tf32)
    bool has_nan = true;

    constexpr int width() const { return mantissa + exponent + 1; }
};

inline constexpr Bits bits_f16{10, 5, 15, true, 0};
inline constexpr Bits bits_bf16{7, 8, 127, true, 0};
inline constexpr Bits bits_tf32{10, 8, 127, true, 13};
inline constexpr Bits bits_e4m3{3, 4, 7, false, 0};
inline constexpr Bits bits_e5m2{2, 5, 15, true, 0};
inline constexpr Bits bits_f32{23, 8, 127, true, 0};
inline constexpr Bits bits_f64{52, 11, 1023, true, 0};

enum class Kind : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, s8, u8, f64, f32, s32 };

inline const Bits& bits_of(Kind kind)
{
    switch (kind) {
        case Kind::f16: return bits_f16;
        case Kind::bf16: return bits_bf16;
        case Kind::tf32: return bits_tf32;
        case Kind::e4m3: return bits_e4m3;
        case Kind::e5m2: return bits_e5m2;
        case Kind::f64: return bits_f64;
        default: return bits_f32;
    }
}

/// One instruction under test.
struct Case {
    const char* name;
    Kind a;
    Kind b;
    Kind d;
    int m;
    int n;
    int k;
};

enum class Class : std::uint8_t {
    moderate,      ///< exponents within +-2 of 1
    wide,          ///< exponents far apart
    cancelling,    ///< products in pairs of nearly opposite value
    around_one,    ///< powers of two and one bit more, to show which bits a sum keeps
    tiny,          ///< subnormal numbers and zeros
    tiny_product,  ///< products near and below the smallest normal f32, for the formats that reach it
    tiny_sum,      ///< products about the smallest subnormal f32, mostly without an addend
    huge,          ///< near overflow
    special,       ///< infinities and NaN among ordinary numbers
    zeros,         ///< signed zeros and ones
    raw,           ///< any bits
};
inline constexpr int class_count = 11;
inline const char* class_name(int which)
{
    constexpr const char* names[class_count] = {"moderate", "wide", "cancelling", "around_one", "tiny", "tiny_product",
                                                "tiny_sum", "huge", "special",    "zeros",      "raw"};
    return names[which];
}

namespace detail {

inline std::uint64_t assemble(const Bits& bits, std::uint64_t sign, int field, std::uint64_t mantissa)
{
    const std::uint64_t code = (sign << (bits.mantissa + bits.exponent)) |
                               (static_cast<std::uint64_t>(field) << bits.mantissa) |
                               (mantissa & ((std::uint64_t{1} << bits.mantissa) - 1));
    return code << bits.pad;
}

inline int top_field(const Bits& bits) { return (1 << bits.exponent) - (bits.ieee ? 2 : 1); }

inline int clamp(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

/// A number with its exponent within `spread` of `centre`.
inline std::uint64_t number(Generator& random, const Bits& bits, int centre, int spread)
{
    const int exponent = centre - spread + static_cast<int>(random.below(static_cast<std::uint32_t>(2 * spread + 1)));
    int field = clamp(exponent + bits.bias, 1, top_field(bits));
    const std::uint64_t draw = random.next();
    std::uint64_t mantissa = draw >> 1;
    if (!bits.ieee && field == top_field(bits)) {
        mantissa &= ~std::uint64_t{1};  // e4m3: all ones would be NaN
    }
    return assemble(bits, draw & 1U, field, mantissa);
}

inline std::uint64_t floating(Generator& random, Kind kind, Class which, bool is_addend)
{
    const Bits& bits = bits_of(kind);
    switch (which) {
        case Class::moderate: return number(random, bits, is_addend ? 2 : 0, 2);
        case Class::wide: {
            const int spread = bits.exponent >= 8 ? 20 : bits.exponent == 5 ? 10 : 6;
            return random.one_in(16) ? 0 : number(random, bits, is_addend ? 4 : 0, is_addend ? 24 : spread);
        }
        case Class::cancelling: return number(random, bits, is_addend ? -3 : 0, is_addend ? 12 : 4);
        case Class::around_one: {
            const int reach = is_addend ? 28 : bits.exponent >= 5 ? 14 : 6;
            const int exponent =
                random.one_in(3) ? 0 : -static_cast<int>(random.below(static_cast<std::uint32_t>(reach)));
            const std::uint64_t draw = random.next();
            const std::uint64_t mantissa = (draw & 6U) == 0 ? 1 : (draw & 6U) == 2 ? ~std::uint64_t{1} : 0;
            return assemble(bits, (draw >> 8) & 1U, clamp(exponent + bits.bias, 1, top_field(bits)), mantissa);
        }
        case Class::tiny: {
            const std::uint64_t draw = random.next();
            const int field = static_cast<int>((draw >> 8) % 4);
            if ((draw & 7U) == 0) {
                return assemble(bits, draw >> 63, 0, 0);
            }
            return assemble(bits, draw >> 63, is_addend ? field * 3 : field, draw >> 16);
        }
        case Class::tiny_product: {
            if (is_addend && random.one_in(2)) {
                return 0;
            }
            const int centre = bits.exponent < 8 ? 1 - bits.bias : is_addend ? -135 : -70;
            if (is_addend && bits.exponent == 8 && random.one_in(2)) {
                const std::uint64_t mantissa = random.next() >> (64 - 6);  // drawn first: the order of draws is fixed
                return assemble(bits, random.below(2), 0, mantissa);
            }
            return number(random, bits, centre, is_addend ? 10 : 8);
        }
        case Class::tiny_sum: {
            if (is_addend && !random.one_in(8)) {
                return 0;
            }
            return number(random, bits, bits.exponent < 8 ? 1 - bits.bias : is_addend ? -126 : -73, 4);
        }
        case Class::huge: {
            const int top = top_field(bits) - bits.bias;
            const bool reaches = bits.exponent >= 8;
            const int centre = is_addend ? top - 1 : reaches ? 62 : top - 1;
            return number(random, bits, centre, is_addend ? 2 : 2);
        }
        case Class::special: {
            const std::uint32_t draw = random.below(40);
            if (draw == 0 || draw == 1) {
                return assemble(bits, draw, bits.ieee ? top_field(bits) + 1 : top_field(bits), 0);
            }
            if (draw == 2 && random.one_in(4)) {
                return assemble(bits, random.below(2), (1 << bits.exponent) - 1, ~std::uint64_t{0});
            }
            if (draw == 3) {
                return assemble(bits, random.below(2), 0, 0);
            }
            return number(random, bits, 0, 4);
        }
        case Class::zeros: {
            const std::uint64_t draw = random.next();
            const bool one = !is_addend && (draw & 0x70U) == 0;
            return assemble(bits, draw >> 63, one ? bits.bias : 0, 0);
        }
        case Class::raw: break;
    }
    const std::uint64_t draw = random.next();
    return bits.width() + bits.pad == 64 ? draw : draw & ((std::uint64_t{1} << (bits.width() + bits.pad)) - 1);
}

inline std::uint64_t integer(Generator& random, Kind kind, Class which)
{
    const std::uint64_t draw = random.next();
    if (kind == Kind::s32) {
        switch (which) {
            case Class::huge: return (draw & 1U) != 0 ? 0x7FFF'FF00U + (draw >> 56) : 0x8000'0000U + (draw >> 56);
            case Class::zeros: return 0;
            case Class::raw: return draw & 0xFFFF'FFFFU;
            default: return static_cast<std::uint32_t>(static_cast<std::int32_t>(draw >> 44) - (1 << 19));
        }
    }
    switch (which) {
        case Class::huge: return (draw & 3U) == 0 ? 0x80 : kind == Kind::s8 ? 0x7F : 0xFF;
        case Class::zeros: return (draw & 3U) == 0 ? 0xFF : 0;
        default: return draw & 0xFF;
    }
}

}  // namespace detail

inline std::uint64_t element(Generator& random, Kind kind, Class which, bool is_addend)
{
    const bool is_integer = kind == Kind::s8 || kind == Kind::u8 || kind == Kind::s32;
    return is_integer ? detail::integer(random, kind, which) : detail::floating(random, kind, which, is_addend);
}

/// `instances` independent problems of one case: codes in a [instance][m][k], b [instance][n][k], c [instance][m][n].
struct Problem {
    std::vector<std::uint64_t> a, b, c;
};

inline Problem make_problem(const Case& test, int which, int instances)
{
    const auto input_class = static_cast<Class>(which);
    Generator random(fnv1a(test.name, std::string_view(test.name).size()) + static_cast<std::uint64_t>(which));
    Problem problem;
    const auto fill = [&](std::vector<std::uint64_t>& out, int count, Kind kind, bool is_addend) {
        out.resize(static_cast<std::size_t>(count) * static_cast<std::size_t>(instances));
        for (std::uint64_t& value : out) {
            value = element(random, kind, input_class, is_addend);
        }
    };
    fill(problem.a, test.m * test.k, test.a, false);
    fill(problem.b, test.n * test.k, test.b, false);
    fill(problem.c, test.m * test.n, test.d, true);
    const bool is_integer = test.a == Kind::s8 || test.a == Kind::u8;
    if (input_class == Class::cancelling && !is_integer) {
        // Element k+1 repeats element k, in B with the opposite sign and sometimes another last bit.
        for (std::size_t i = 0; i + 1 < problem.a.size(); i += 2) {
            problem.a[i + 1] = problem.a[i];
        }
        const Bits& bits = bits_of(test.b);
        for (std::size_t i = 0; i + 1 < problem.b.size(); i += 2) {
            const std::uint64_t flip = random.one_in(3) ? std::uint64_t{1} << bits.pad : 0;
            problem.b[i + 1] = problem.b[i] ^ flip ^ (std::uint64_t{1} << (bits.width() + bits.pad - 1));
        }
    }
    return problem;
}

/// Bytes of one cell of a kind.
inline int cell_bytes(Kind kind)
{
    switch (kind) {
        case Kind::f16:
        case Kind::bf16: return 2;
        case Kind::e4m3:
        case Kind::e5m2:
        case Kind::s8:
        case Kind::u8: return 1;
        case Kind::f64: return 8;
        default: return 4;
    }
}

/// Codes as little-endian cells, one after the other.
inline std::vector<unsigned char> pack(const std::vector<std::uint64_t>& codes, Kind kind)
{
    const int bytes = cell_bytes(kind);
    std::vector<unsigned char> out;
    out.reserve(codes.size() * static_cast<std::size_t>(bytes));
    for (const std::uint64_t code : codes) {
        for (int i = 0; i < bytes; ++i) {
            out.push_back(static_cast<unsigned char>(code >> (8 * i)));
        }
    }
    return out;
}

inline constexpr int instance_count = 32;

inline constexpr Case wgmma_cases[] = {
    {"wgmma.m64n8k16.f32.f16.f16", Kind::f16, Kind::f16, Kind::f32, 64, 8, 16},
    {"wgmma.m64n8k16.f16.f16.f16", Kind::f16, Kind::f16, Kind::f16, 64, 8, 16},
    {"wgmma.m64n8k16.f32.bf16.bf16", Kind::bf16, Kind::bf16, Kind::f32, 64, 8, 16},
    {"wgmma.m64n8k8.f32.tf32.tf32", Kind::tf32, Kind::tf32, Kind::f32, 64, 8, 8},
    {"wgmma.m64n8k32.f32.e4m3.e4m3", Kind::e4m3, Kind::e4m3, Kind::f32, 64, 8, 32},
    {"wgmma.m64n8k32.f32.e4m3.e5m2", Kind::e4m3, Kind::e5m2, Kind::f32, 64, 8, 32},
    {"wgmma.m64n8k32.f32.e5m2.e4m3", Kind::e5m2, Kind::e4m3, Kind::f32, 64, 8, 32},
    {"wgmma.m64n8k32.f32.e5m2.e5m2", Kind::e5m2, Kind::e5m2, Kind::f32, 64, 8, 32},
    {"wgmma.m64n8k32.f16.e4m3.e4m3", Kind::e4m3, Kind::e4m3, Kind::f16, 64, 8, 32},
    {"wgmma.m64n8k32.f16.e4m3.e5m2", Kind::e4m3, Kind::e5m2, Kind::f16, 64, 8, 32},
    {"wgmma.m64n8k32.f16.e5m2.e4m3", Kind::e5m2, Kind::e4m3, Kind::f16, 64, 8, 32},
    {"wgmma.m64n8k32.f16.e5m2.e5m2", Kind::e5m2, Kind::e5m2, Kind::f16, 64, 8, 32},
    {"wgmma.m64n8k32.s32.s8.s8", Kind::s8, Kind::s8, Kind::s32, 64, 8, 32},
    {"wgmma.m64n8k32.s32.s8.u8", Kind::s8, Kind::u8, Kind::s32, 64, 8, 32},
    {"wgmma.m64n8k32.s32.u8.s8", Kind::u8, Kind::s8, Kind::s32, 64, 8, 32},
    {"wgmma.m64n8k32.s32.u8.u8", Kind::u8, Kind::u8, Kind::s32, 64, 8, 32},
    {"wgmma.m64n8k32.s32.s8.s8.satfinite", Kind::s8, Kind::s8, Kind::s32, 64, 8, 32},
    {"wgmma.m64n8k32.s32.u8.u8.satfinite", Kind::u8, Kind::u8, Kind::s32, 64, 8, 32},
    // With imm-scale-a and imm-scale-b -1 and 1, and with scale-d false.
    {"wgmma.m64n8k16.f32.f16.f16 negated", Kind::f16, Kind::f16, Kind::f32, 64, 8, 16},
    {"wgmma.m64n8k16.f32.f16.f16 without D", Kind::f16, Kind::f16, Kind::f32, 64, 8, 16},
};

inline constexpr Case mma_cases[] = {
    {"mma.m16n8k8.f32.f16.f16.f32", Kind::f16, Kind::f16, Kind::f32, 16, 8, 8},
    {"mma.m16n8k16.f32.f16.f16.f32", Kind::f16, Kind::f16, Kind::f32, 16, 8, 16},
    {"mma.m16n8k8.f16.f16.f16.f16", Kind::f16, Kind::f16, Kind::f16, 16, 8, 8},
    {"mma.m16n8k16.f16.f16.f16.f16", Kind::f16, Kind::f16, Kind::f16, 16, 8, 16},
    {"mma.m16n8k8.f32.bf16.bf16.f32", Kind::bf16, Kind::bf16, Kind::f32, 16, 8, 8},
    {"mma.m16n8k16.f32.bf16.bf16.f32", Kind::bf16, Kind::bf16, Kind::f32, 16, 8, 16},
    {"mma.m16n8k4.f32.tf32.tf32.f32", Kind::tf32, Kind::tf32, Kind::f32, 16, 8, 4},
    {"mma.m16n8k8.f32.tf32.tf32.f32", Kind::tf32, Kind::tf32, Kind::f32, 16, 8, 8},
    {"mma.m16n8k32.f32.e4m3.e4m3.f32", Kind::e4m3, Kind::e4m3, Kind::f32, 16, 8, 32},
    {"mma.m16n8k32.f32.e5m2.e5m2.f32", Kind::e5m2, Kind::e5m2, Kind::f32, 16, 8, 32},
    {"mma.m16n8k32.f32.e4m3.e5m2.f32", Kind::e4m3, Kind::e5m2, Kind::f32, 16, 8, 32},
    {"mma.m16n8k32.f16.e4m3.e4m3.f16", Kind::e4m3, Kind::e4m3, Kind::f16, 16, 8, 32},
    {"mma.m16n8k16.f32.e4m3.e4m3.f32", Kind::e4m3, Kind::e4m3, Kind::f32, 16, 8, 16},
    {"mma.m16n8k16.f16.e5m2.e4m3.f16", Kind::e5m2, Kind::e4m3, Kind::f16, 16, 8, 16},
    {"mma.m16n8k16.s32.s8.s8.s32", Kind::s8, Kind::s8, Kind::s32, 16, 8, 16},
    {"mma.m16n8k32.s32.s8.s8.s32", Kind::s8, Kind::s8, Kind::s32, 16, 8, 32},
    {"mma.m16n8k32.s32.u8.s8.s32", Kind::u8, Kind::s8, Kind::s32, 16, 8, 32},
    {"mma.m16n8k32.s32.s8.s8.s32.satfinite", Kind::s8, Kind::s8, Kind::s32, 16, 8, 32},
    {"mma.m8n8k4.f64.f64.f64.f64", Kind::f64, Kind::f64, Kind::f64, 8, 8, 4},
    {"mma.m16n8k4.f64.f64.f64.f64", Kind::f64, Kind::f64, Kind::f64, 16, 8, 4},
    {"mma.m16n8k8.f64.f64.f64.f64", Kind::f64, Kind::f64, Kind::f64, 16, 8, 8},
    {"mma.m16n8k16.f64.f64.f64.f64", Kind::f64, Kind::f64, Kind::f64, 16, 8, 16},
};

}  // namespace tessera::probe
