// Video instructions against the definitions of the PTX ISA, section "Video Instructions".

#include <algorithm>
#include <functional>

#include "one_instruction.hpp"

namespace {

using namespace tessera::emulator;
using namespace tessera::emulator::test;

using U = std::uint32_t;
using I = std::int64_t;

I part(U word, unsigned first, unsigned bits, bool is_signed)
{
    const I value = static_cast<I>(std::uint64_t{word} >> first & ((std::uint64_t{1} << bits) - 1));
    return is_signed && value >= (I{1} << (bits - 1)) ? value - (I{1} << bits) : value;
}

I clamp(I value, unsigned bits, bool is_signed)
{
    return is_signed ? std::clamp(value, -(I{1} << (bits - 1)), (I{1} << (bits - 1)) - 1)
                     : std::clamp(value, I{0}, (I{1} << bits) - 1);
}

struct Arithmetic {
    const char* name;
    std::function<I(I, I)> apply;
};

const std::vector<Arithmetic> arithmetic{
    {"vadd", [](I a, I b) { return a + b; }},
    {"vsub", [](I a, I b) { return a - b; }},
    {"vabsdiff", [](I a, I b) { return a > b ? a - b : b - a; }},
    {"vmin", [](I a, I b) { return std::min(a, b); }},
    {"vmax", [](I a, I b) { return std::max(a, b); }},
};

const char* type(bool is_signed) { return is_signed ? ".s32" : ".u32"; }

}  // namespace

TEST_CASE("scalar video instructions")
{
    for (const Arithmetic& op : arithmetic) {
        for (unsigned signs = 0; signs < 8; ++signs) {
            const bool d = (signs & 1) != 0, a = (signs & 2) != 0, b = (signs & 4) != 0;
            const std::string stem = std::string(op.name) + type(d) + type(a) + type(b);
            const auto value = [=, &op](U x, U y) { return op.apply(part(x, 8, 8, a), part(y, 16, 16, b)); };
            check_lanes<U, U, U, U>(stem + " d, a.b1, b.h1;", [=](U x, U y, U) { return static_cast<U>(value(x, y)); });
            check_lanes<U, U, U, U>(stem + ".sat d, a.b1, b.h1;",
                                    [=](U x, U y, U) { return static_cast<U>(clamp(value(x, y), 32, d)); });
            check_lanes<U, U, U, U>(stem + ".sat d, a, b;", [=, &op](U x, U y, U) {
                return static_cast<U>(clamp(op.apply(part(x, 0, 32, a), part(y, 0, 32, b)), 32, d));
            });
            check_lanes<U, U, U, U>(stem + ".sat.add d, a.b1, b.h1, c;",
                                    [=](U x, U y, U z) { return static_cast<U>(clamp(value(x, y), 32, d)) + z; });
            check_lanes<U, U, U, U>(stem + ".max d, a.b1, b.h1, c;", [=](U x, U y, U z) {
                const U left = static_cast<U>(value(x, y));
                return d ? static_cast<U>(std::max(static_cast<std::int32_t>(left), static_cast<std::int32_t>(z)))
                         : std::max(left, z);
            });
            check_lanes<U, U, U, U>(stem + ".sat d.b2, a.b1, b.h1, c;", [=](U x, U y, U z) {
                return (z & 0xFF00FFFF) | (static_cast<U>(clamp(value(x, y), 8, d)) & 0xFF) << 16;
            });
            check_lanes<U, U, U, U>(stem + " d.h1, a.b1, b.h1, c;",
                                    [=](U x, U y, U z) { return (z & 0xFFFF) | static_cast<U>(value(x, y)) << 16; });
        }
    }
}

TEST_CASE("vshl, vshr, vset, vmad")
{
    check_lanes<U, U, U>("vshl.u32.u32.u32.clamp d, a, b;", [](U a, U b) { return b > 31 ? 0 : a << b; });
    check_lanes<U, U, U>("vshl.u32.u32.u32.wrap d, a, b;", [](U a, U b) { return a << (b & 31); });
    check_lanes<U, U, U>("vshl.u32.u32.u32.sat.clamp d, a.h0, b.b0;", [](U a, U b) {
        return static_cast<U>(clamp(static_cast<I>(a & 0xFFFF) << std::min(b & 255, 32u), 32, false));
    });
    check_lanes<U, U, U>("vshr.s32.s32.u32.clamp d, a, b;",
                         [](U a, U b) { return static_cast<U>(part(a, 0, 32, true) >> std::min(b, 32u)); });
    check_lanes<U, U, U, U>("vshr.u32.u32.u32.wrap.add d, a, b, c;", [](U a, U b, U c) { return (a >> (b & 31)) + c; });
    check_lanes<U, U, U>("vset.s32.u32.lt d, a.b3, b.b0;",
                         [](U a, U b) { return U{part(a, 24, 8, true) < part(b, 0, 8, false)}; });
    check_lanes<U, U, U, U>("vset.u32.u32.ge.add d, a.h0, b.h1, c;",
                            [](U a, U b, U c) { return c + U{(a & 0xFFFF) >= b >> 16}; });
    __extension__ using Wide = __int128;
    const auto cut = [](Wide value) { return static_cast<U>(value); };
    check_lanes<U, U, U, U>("vmad.u32.u32.u32 d, a.h0, b, c;",
                            [=](U a, U b, U c) { return cut(Wide{a & 0xFFFF} * b + c); });
    check_lanes<U, U, U, U>("vmad.s32.s32.s32 d, a.h0, -b.b1, c;", [=](U a, U b, U c) {
        return cut(-Wide{part(a, 0, 16, true)} * part(b, 8, 8, true) + part(c, 0, 32, true));
    });
    check_lanes<U, U, U, U>("vmad.s32.s32.s32.shr7 d, a, b, -c;", [=](U a, U b, U c) {
        return cut((Wide{part(a, 0, 32, true)} * part(b, 0, 32, true) + part(~c, 0, 32, true) + 1) >> 7);
    });
    check_lanes<U, U, U, U>("vmad.u32.u32.u32.po.shr15 d, a, b, c;",
                            [=](U a, U b, U c) { return cut((Wide{a} * b + c + 1) >> 15); });
    check_lanes<U, U, U, U>("vmad.s32.s32.u32.sat d, a.h1, b.h0, c;", [=](U a, U b, U c) {
        return static_cast<U>(clamp(part(a, 16, 16, true) * part(b, 0, 16, false) + part(c, 0, 32, true), 32, true));
    });
}

namespace {

template <unsigned elements>
void check_simd()
{
    constexpr unsigned bits = 32 / elements;
    const std::string suffix = std::to_string(elements);
    std::vector<Arithmetic> all = arithmetic;
    all.push_back({"vavrg", [](I a, I b) { return (a + b + (a + b >= 0 ? 1 : 0)) >> 1; }});
    for (const Arithmetic& op : all) {
        for (unsigned signs = 0; signs < 8; ++signs) {
            const bool d = (signs & 1) != 0, a = (signs & 2) != 0, b = (signs & 4) != 0;
            const std::string stem = op.name + suffix + type(d) + type(a) + type(b);
            const auto value = [=, &op](U x, U y, unsigned i) {
                return op.apply(part(x, i * bits, bits, a), part(y, i * bits, bits, b));
            };
            const auto merged = [=](U x, U y, bool saturate) {
                U result = 0;
                for (unsigned i = 0; i < elements; ++i) {
                    const I t = saturate ? clamp(value(x, y, i), bits, d) : value(x, y, i);
                    result |= static_cast<U>(part(static_cast<U>(t), 0, bits, false)) << (i * bits);
                }
                return result;
            };
            check_lanes<U, U, U, U>(stem + " d, a, b, c;", [=](U x, U y, U) { return merged(x, y, false); });
            check_lanes<U, U, U, U>(stem + ".sat d, a, b, c;", [=](U x, U y, U) { return merged(x, y, true); });
            check_lanes<U, U, U, U>(stem + ".add d, a, b, c;", [=](U x, U y, U z) {
                for (unsigned i = 0; i < elements; ++i) {
                    z += static_cast<U>(value(x, y, i));
                }
                return z;
            });
        }
    }
}

}  // namespace

TEST_CASE("SIMD video instructions")
{
    check_simd<2>();
    check_simd<4>();
}

TEST_CASE("SIMD video instructions with masks and selectors")
{
    // Elements 0 and 2 are written: b3 of b (7) minus b0 of a, and b1 of a minus b2 of b (6).
    check_lanes<U, U, U, U>("vsub4.u32.u32.u32 d.b20, a.b0107, b.b3604, c;", [](U a, U b, U c) {
        const U element0 = ((b >> 24) - b) & 255;                       // a.[..7], b.[...4]
        const U element2 = (((a >> 8) & 255) - (b >> 16 & 255)) & 255;  // a.[.1..], b.[.6..]
        return (c & 0xFF00FF00) | element0 | element2 << 16;
    });
    check_lanes<U, U, U, U>("vadd2.u32.u32.u32 d.h1, a.h03, b.h21, c;", [](U a, U b, U c) {
        return (c & 0xFFFF) | ((a + b) & 0xFFFF) << 16;  // a's low half and b's low half (2)
    });
    check_lanes<U, U, U, U>("vset4.s32.s32.gt d, a, b, c;", [](U a, U b, U) {
        U d = 0;
        for (unsigned i = 0; i < 4; ++i) {
            d |= U{part(a, 8 * i, 8, true) > part(b, 8 * i, 8, true)} << (8 * i);
        }
        return d;
    });
    check_lanes<U, U, U, U>("vset2.u32.u32.ne.add d, a, b, c;",
                            [](U a, U b, U c) { return c + U{(a & 0xFFFF) != (b & 0xFFFF)} + U{a >> 16 != b >> 16}; });
}
