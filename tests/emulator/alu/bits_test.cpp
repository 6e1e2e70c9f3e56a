// Logic, shifts and bit fields against bit-by-bit definitions.

#include <algorithm>

#include "one_instruction.hpp"

namespace {

using namespace tessera::emulator;
using namespace tessera::emulator::test;

using H = std::uint16_t;
using U = std::uint32_t;
using S = std::int32_t;
using L = std::uint64_t;

template <typename T>
std::string bits_name()
{
    return "b" + std::to_string(8 * sizeof(T));
}

template <typename T>
bool bit(T value, unsigned i)
{
    return (static_cast<L>(value) >> i & 1) != 0;
}

template <typename T>
void check_logic()
{
    const std::string type = bits_name<T>();
    check_lanes<T, T, T>("and." + type + " d, a, b;", [](T a, T b) { return static_cast<T>(a & b); });
    check_lanes<T, T, T>("or." + type + " d, a, b;", [](T a, T b) { return static_cast<T>(a | b); });
    check_lanes<T, T, T>("xor." + type + " d, a, b;", [](T a, T b) { return static_cast<T>(a ^ b); });
    check_lanes<T, T>("not." + type + " d, a;", [](T a) { return static_cast<T>(~a); });
    check_lanes<T, T>("cnot." + type + " d, a;", [](T a) { return static_cast<T>(!a); });
    const auto shifted_left = [](T a, U n) {
        T d = 0;
        for (unsigned i = 0; i < 8 * sizeof(T); ++i) {
            d = static_cast<T>(d | (i >= n && bit(a, i - n) ? T{1} : T{0}) << i);
        }
        return d;
    };
    check_lanes<T, T, U>("shl." + type + " d, a, b;", shifted_left);
    const auto shifted_right = [](T a, U n, bool fill) {
        T d = 0;
        for (unsigned i = 0; i < 8 * sizeof(T); ++i) {
            const bool one = L{i} + n < 8 * sizeof(T) ? bit(a, i + n) : fill;
            d = static_cast<T>(d | (one ? T{1} : T{0}) << i);
        }
        return d;
    };
    check_lanes<T, T, U>("shr." + type + " d, a, b;", [=](T a, U n) { return shifted_right(a, n, false); });
    check_lanes<T, T, U>("shr.u" + type.substr(1) + " d, a, b;", [=](T a, U n) { return shifted_right(a, n, false); });
    check_lanes<T, T, U>("shr.s" + type.substr(1) + " d, a, b;",
                         [=](T a, U n) { return shifted_right(a, n, bit(a, 8 * sizeof(T) - 1)); });
}

/// bfe bit by bit, as the PTX ISA defines it.
template <typename T>
T extracted(T a, U b, U c, bool is_signed)
{
    const unsigned most = 8 * sizeof(T) - 1;
    const unsigned position = b & 255;
    const unsigned length = c & 255;
    const bool fill = is_signed && length != 0 && bit(a, std::min(position + length - 1, most));
    T d = 0;
    for (unsigned i = 0; i <= most; ++i) {
        d = static_cast<T>(d | (i < length && position + i <= most ? T{bit(a, position + i)} : T{fill}) << i);
    }
    return d;
}

template <typename T>
void check_fields()
{
    const std::string width = std::to_string(8 * sizeof(T));
    check_lanes<T, T, U, U>("bfe.u" + width + " d, a, b, c;", [](T a, U b, U c) { return extracted(a, b, c, false); });
    check_lanes<T, T, U, U>("bfe.s" + width + " d, a, b, c;", [](T a, U b, U c) { return extracted(a, b, c, true); });
    check_lanes<T, T, T, U, U>("bfi.b" + width + " d, a, b, c, e;", [](T a, T b, U c, U e) {
        T d = b;
        for (unsigned i = 0; i < (e & 255) && (c & 255) + i < 8 * sizeof(T); ++i) {
            const T one = static_cast<T>(T{1} << ((c & 255) + i));
            d = static_cast<T>(bit(a, i) ? d | one : d & ~one);
        }
        return d;
    });
    check_lanes<T, T>("brev.b" + width + " d, a;", [](T a) {
        T d = 0;
        for (unsigned i = 0; i < 8 * sizeof(T); ++i) {
            d = static_cast<T>(d | T{bit(a, i)} << (8 * sizeof(T) - 1 - i));
        }
        return d;
    });
    check_lanes<U, T>("popc.b" + width + " d, a;", [](T a) {
        U count = 0;
        for (unsigned i = 0; i < 8 * sizeof(T); ++i) {
            count += bit(a, i);
        }
        return count;
    });
    const auto leading = [](T a) {  // position of the highest one, or all bits set
        U found = ~0u;
        for (unsigned i = 0; i < 8 * sizeof(T); ++i) {
            found = bit(a, i) ? i : found;
        }
        return found;
    };
    const U most = 8 * sizeof(T) - 1;
    check_lanes<U, T>("clz.b" + width + " d, a;", [=](T a) { return a == 0 ? most + 1 : most - leading(a); });
    check_lanes<U, T>("bfind.u" + width + " d, a;", leading);
    check_lanes<U, T>("bfind.s" + width + " d, a;",
                      [=](T a) { return leading(bit(a, most) ? static_cast<T>(~a) : a); });
    check_lanes<U, T>("bfind.shiftamt.u" + width + " d, a;", [=](T a) { return a == 0 ? ~0u : most - leading(a); });
    check_lanes<U, T>("bfind.shiftamt.s" + width + " d, a;", [=](T a) {
        const U at = leading(bit(a, most) ? static_cast<T>(~a) : a);
        return at == ~0u ? at : most - at;
    });
}

}  // namespace

TEST_CASE("logic and shifts of every size")
{
    check_logic<H>();
    check_logic<U>();
    check_logic<L>();
}

TEST_CASE("bit fields and counts")
{
    check_fields<U>();
    check_fields<L>();
}

TEST_CASE("logic on predicates")
{
    const Surroundings around{.before = "setp.ne.u32 p, a, 0; setp.ne.u32 q, b, 0; setp.ne.u32 r, 0, 0;",
                              .after = "selp.u32 d, 1, 0, r;"};
    const auto check = [&](const char* text, auto f) {
        const std::vector<std::tuple<U, U>> operands{{0, 0}, {0, 1}, {1, 0}, {1, 1}};
        const std::vector<U> values = results_of<U, U, U>(text, operands, around);
        for (std::size_t i = 0; i < operands.size(); ++i) {
            INFO(std::string(text) << " of " << i);
            CHECK(values[i] == static_cast<U>(f(std::get<0>(operands[i]) != 0, std::get<1>(operands[i]) != 0)));
        }
    };
    check("and.pred r, p, q;", [](bool p, bool q) { return p && q; });
    check("and.pred r, p, !q;", [](bool p, bool q) { return p && !q; });
    check("or.pred r, !p, q;", [](bool p, bool q) { return !p || q; });
    check("xor.pred r, p, q;", [](bool p, bool q) { return p != q; });
    check("not.pred r, p;", [](bool p, bool) { return !p; });
    check("mov.pred r, p;", [](bool p, bool) { return p; });
    check("mov.pred r, !q;", [](bool, bool q) { return !q; });
    check("mov.pred r, 1;", [](bool, bool) { return true; });
    check("or.pred r, p, 1;", [](bool, bool) { return true; });
}

TEST_CASE("lop3 with every table")
{
    for (unsigned table = 0; table < 256; ++table) {
        const std::vector<std::tuple<U, U, U>> operands{{0xF0F0F0F0, 0xCCCCCCCC, 0xAAAAAAAA},
                                                        {0x12345678, 0x9ABCDEF0, 0x0F1E2D3C}};
        const auto values = results_of<U, U, U, U>("lop3.b32 d, a, b, c, " + std::to_string(table) + ";", operands);
        CHECK(values[0] == table * 0x01010101u);
        U expected = 0;
        for (unsigned i = 0; i < 32; ++i) {
            const auto& [a, b, c] = operands[1];
            expected |= (table >> (bit(a, i) * 4 + bit(b, i) * 2 + bit(c, i)) & 1) << i;
        }
        CHECK(values[1] == expected);
    }
    const Surroundings around{.before = "setp.ne.u32 q, b, 0; setp.ne.u32 p, 0, 0;", .after = "selp.u32 d, 1, 0, p;"};
    for (const bool use_or : {false, true}) {
        const std::string text =
            std::string("lop3.") + (use_or ? "or" : "and") + ".b32 t0|p, a, c, -1, 0x80, !q;";  // a & c
        for (const auto& [a, b, c] : std::vector<std::tuple<U, U, U>>{{5, 0, 2}, {5, 0, 4}, {5, 1, 2}, {5, 1, 4}}) {
            const U value = results_of<U, U, U, U>(text, {{a, b, c}}, around)[0];
            const bool nonzero = (a & c) != 0;
            CHECK(value == static_cast<U>(use_or ? nonzero || b == 0 : nonzero && b == 0));
        }
    }
}

TEST_CASE("funnel shifts")
{
    for (const bool left : {false, true}) {
        for (const bool wrap : {false, true}) {
            check_lanes<U, U, U, U>(
                std::string("shf.") + (left ? "l." : "r.") + (wrap ? "wrap" : "clamp") + ".b32 d, a, b, c;",
                [=](U a, U b, U c) {
                    const U n = wrap ? c % 32 : c > 32 ? 32 : c;
                    U d = 0;
                    for (unsigned i = 0; i < 32; ++i) {
                        const unsigned from = left ? i + 32 - n : i + n;  // bit of b:a
                        d |= U{from < 32 ? bit(a, from) : bit(b, from - 32)} << i;
                    }
                    return d;
                });
        }
    }
}

TEST_CASE("fns, bmsk, szext")
{
    std::vector<std::tuple<U, U, S>> operands;
    std::mt19937_64 random(5);
    for (int i = 0; i < 512; ++i) {
        operands.emplace_back(any_operand<U>(random), static_cast<U>(random() % 32),
                              static_cast<S>(random() % 70) - 35);
    }
    check_for<U, U, U, S>("fns.b32 d, a, b, c;", operands, [](U mask, U base, S offset) {
        if (offset == 0) {
            return bit(mask, base) ? base : ~0u;
        }
        S left = offset > 0 ? offset : -offset;
        for (int i = static_cast<int>(base); i >= 0 && i < 32; i += offset > 0 ? 1 : -1) {
            if (bit(mask, static_cast<unsigned>(i)) && --left == 0) {
                return static_cast<U>(i);
            }
        }
        return ~0u;
    });
    for (const bool clamp : {false, true}) {
        const std::string mode = clamp ? "clamp" : "wrap";
        check_lanes<U, U, U>("bmsk." + mode + ".b32 d, a, b;", [=](U a, U b) {
            const L first = clamp ? a : a % 32;
            const L count = clamp ? b : b % 32;
            U d = 0;
            for (L i = first; i < 32 && i - first < count; ++i) {
                d |= 1u << i;
            }
            return d;
        });
        for (const bool is_signed : {false, true}) {
            check_lanes<U, U, U>("szext." + mode + (is_signed ? ".s32" : ".u32") + " d, a, b;", [=](U a, U b) {
                const U count = clamp ? std::min(b, 32u) : b % 32;
                const bool fill = is_signed && count != 0 && bit(a, count - 1);
                U d = 0;
                for (unsigned i = 0; i < 32; ++i) {
                    d |= U{i < count ? bit(a, i) : fill} << i;
                }
                return d;
            });
        }
    }
}

TEST_CASE("prmt")
{
    const auto byte = [](U a, U b, U i) { return (i < 4 ? a >> (8 * i) : b >> (8 * (i - 4))) & 255; };
    check_lanes<U, U, U, U>("prmt.b32 d, a, b, c;", [=](U a, U b, U c) {
        U d = 0;
        for (unsigned i = 0; i < 4; ++i) {
            const U selector = c >> (4 * i) & 15;
            const U value = byte(a, b, selector & 7);
            d |= (selector < 8 ? value : (value & 128) != 0 ? 255 : 0) << (8 * i);
        }
        return d;
    });
    // The bytes of the six modes, most significant first, for c = 0, 1, 2, 3 (PTX ISA, "prmt").
    struct Mode {
        const char* name;
        const char* bytes[4];
    };
    for (const Mode& mode :
         {Mode{"f4e", {"3210", "4321", "5432", "6543"}}, Mode{"b4e", {"5670", "6701", "7012", "0123"}},
          Mode{"rc8", {"0000", "1111", "2222", "3333"}}, Mode{"ecl", {"3210", "3211", "3222", "3333"}},
          Mode{"ecr", {"0000", "1110", "2210", "3210"}}, Mode{"rc16", {"1010", "3232", "1010", "3232"}}}) {
        check_lanes<U, U, U, U>(std::string("prmt.b32.") + mode.name + " d, a, b, c;", [=](U a, U b, U c) {
            U d = 0;
            for (unsigned i = 0; i < 4; ++i) {
                d = d << 8 | byte(a, b, static_cast<U>(mode.bytes[c & 3][i] - '0'));
            }
            return d;
        });
    }
}
