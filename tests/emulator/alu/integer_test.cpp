// Integer arithmetic against its definitions in 128-bit integers.

#include <algorithm>
#include <limits>

#include "one_instruction.hpp"

namespace {

using namespace tessera::emulator;
using namespace tessera::emulator::test;

__extension__ using Wide = __int128;
__extension__ using Bits = unsigned __int128;

template <typename T>
constexpr const char* name_of = nullptr;
template <>
constexpr const char* name_of<std::uint16_t> = "u16";
template <>
constexpr const char* name_of<std::uint32_t> = "u32";
template <>
constexpr const char* name_of<std::uint64_t> = "u64";
template <>
constexpr const char* name_of<std::int16_t> = "s16";
template <>
constexpr const char* name_of<std::int32_t> = "s32";
template <>
constexpr const char* name_of<std::int64_t> = "s64";

template <typename T>
T cut(Wide value)
{
    return static_cast<T>(value);
}
template <typename T>
T clamp(Wide value)
{
    return static_cast<T>(std::clamp(value, Wide{std::numeric_limits<T>::min()}, Wide{std::numeric_limits<T>::max()}));
}

template <typename T>
struct Twice;
template <>
struct Twice<std::uint16_t> {
    using type = std::uint32_t;
};
template <>
struct Twice<std::int16_t> {
    using type = std::int32_t;
};
template <>
struct Twice<std::uint32_t> {
    using type = std::uint64_t;
};
template <>
struct Twice<std::int32_t> {
    using type = std::int64_t;
};

template <typename T>
std::string of(const char* stem, const char* operands)
{
    return std::string(stem) + name_of<T> + " " + operands + ";";
}

template <typename T>
void check_type()
{
    constexpr unsigned width = 8 * sizeof(T);
    const auto high = [](T a, T b) {
        if constexpr (std::is_signed_v<T>) {
            return cut<T>(Wide{a} * b >> width);
        } else {
            return static_cast<T>(Bits{a} * b >> width);
        }
    };
    check_lanes<T, T, T>(of<T>("add.", "d, a, b"), [](T a, T b) { return cut<T>(Wide{a} + b); });
    check_lanes<T, T, T>(of<T>("sub.", "d, a, b"), [](T a, T b) { return cut<T>(Wide{a} - b); });
    check_lanes<T, T, T>(of<T>("mul.lo.", "d, a, b"),
                         [](T a, T b) { return static_cast<T>(static_cast<Bits>(a) * static_cast<Bits>(b)); });
    check_lanes<T, T, T>(of<T>("mul.hi.", "d, a, b"), high);
    check_lanes<T, T, T, T>(of<T>("mad.lo.", "d, a, b, c"), [](T a, T b, T c) {
        return static_cast<T>(static_cast<Bits>(a) * static_cast<Bits>(b) + static_cast<Bits>(c));
    });
    check_lanes<T, T, T, T>(of<T>("mad.hi.", "d, a, b, c"),
                            [high](T a, T b, T c) { return cut<T>(Wide{high(a, b)} + c); });
    check_lanes<T, T, T, T>(of<T>("sad.", "d, a, b, c"), [](T a, T b, T c) {
        const Wide difference = Wide{a} - b;
        return cut<T>(Wide{c} + (difference < 0 ? -difference : difference));
    });
    check_lanes<T, T, T>(of<T>("min.", "d, a, b"), [](T a, T b) { return Wide{a} < Wide{b} ? a : b; });
    check_lanes<T, T, T>(of<T>("max.", "d, a, b"), [](T a, T b) { return Wide{a} > Wide{b} ? a : b; });
    // Division by zero: all bits set, as on hardware.
    check_lanes<T, T, T>(of<T>("div.", "d, a, b"),
                         [](T a, T b) { return b == 0 ? static_cast<T>(-1) : cut<T>(Wide{a} / Wide{b}); });
    check_lanes<T, T, T>(of<T>("rem.", "d, a, b"),
                         [](T a, T b) { return b == 0 ? static_cast<T>(-1) : cut<T>(Wide{a} % Wide{b}); });
    if constexpr (std::is_signed_v<T>) {
        check_lanes<T, T>(of<T>("abs.", "d, a"), [](T a) { return cut<T>(a < 0 ? -Wide{a} : Wide{a}); });
        check_lanes<T, T>(of<T>("neg.", "d, a"), [](T a) { return cut<T>(-Wide{a}); });
    }
    if constexpr (sizeof(T) < 8) {
        using W = typename Twice<T>::type;
        check_lanes<W, T, T>(of<T>("mul.wide.", "d, a, b"), [](T a, T b) { return cut<W>(Wide{a} * b); });
        check_lanes<W, T, T, W>(of<T>("mad.wide.", "d, a, b, c"),
                                [](T a, T b, W c) { return cut<W>(Wide{a} * b + c); });
    }
}

/// Both halves of a packed result by a function of 16-bit values.
template <typename H, typename F>
auto halves(F f)
{
    return [f](std::uint32_t a, std::uint32_t b) {
        const auto low = static_cast<std::uint16_t>(f(static_cast<H>(a), static_cast<H>(b)));
        const auto high = static_cast<std::uint16_t>(f(static_cast<H>(a >> 16), static_cast<H>(b >> 16)));
        return low | std::uint32_t{high} << 16;
    };
}

using U = std::uint32_t;
using S = std::int32_t;

Wide low24(U a) { return a & 0xFFFFFF; }
Wide low24(S a) { return Wide{static_cast<S>(static_cast<U>(a) << 8)} / 256; }

}  // namespace

TEST_CASE("arithmetic of every integer type")
{
    check_type<std::uint16_t>();
    check_type<std::int16_t>();
    check_type<std::uint32_t>();
    check_type<std::int32_t>();
    check_type<std::uint64_t>();
    check_type<std::int64_t>();
}

TEST_CASE("saturating integer arithmetic")
{
    check_lanes<S, S, S>("add.sat.s32 d, a, b;", [](S a, S b) { return clamp<S>(Wide{a} + b); });
    check_lanes<S, S, S>("sub.sat.s32 d, a, b;", [](S a, S b) { return clamp<S>(Wide{a} - b); });
    check_lanes<S, S, S, S>("mad.hi.sat.s32 d, a, b, c;",
                            [](S a, S b, S c) { return clamp<S>((Wide{a} * b >> 32) + c); });
}

TEST_CASE("24-bit products")
{
    check_lanes<U, U, U>("mul24.lo.u32 d, a, b;", [](U a, U b) { return cut<U>(low24(a) * low24(b)); });
    check_lanes<U, U, U>("mul24.hi.u32 d, a, b;", [](U a, U b) { return cut<U>(low24(a) * low24(b) >> 16); });
    check_lanes<S, S, S>("mul24.lo.s32 d, a, b;", [](S a, S b) { return cut<S>(low24(a) * low24(b)); });
    check_lanes<S, S, S>("mul24.hi.s32 d, a, b;", [](S a, S b) { return cut<S>(low24(a) * low24(b) >> 16); });
    check_lanes<S, S, S, S>("mad24.lo.s32 d, a, b, c;", [](S a, S b, S c) { return cut<S>(low24(a) * low24(b) + c); });
    check_lanes<U, U, U, U>("mad24.hi.u32 d, a, b, c;",
                            [](U a, U b, U c) { return cut<U>((low24(a) * low24(b) >> 16) + c); });
    check_lanes<S, S, S, S>("mad24.hi.sat.s32 d, a, b, c;",
                            [](S a, S b, S c) { return clamp<S>(Wide{cut<S>(low24(a) * low24(b) >> 16)} + c); });
}

TEST_CASE("packed 16-bit integers and .relu")
{
    using H = std::int16_t;
    using UH = std::uint16_t;
    check_lanes<U, U, U>("add.u16x2 d, a, b;", halves<UH>([](UH a, UH b) { return a + b; }));
    check_lanes<U, U, U>("add.s16x2 d, a, b;", halves<H>([](H a, H b) { return a + b; }));
    check_lanes<U, U, U>("min.u16x2 d, a, b;", halves<UH>([](UH a, UH b) { return std::min(a, b); }));
    check_lanes<U, U, U>("max.u16x2 d, a, b;", halves<UH>([](UH a, UH b) { return std::max(a, b); }));
    check_lanes<U, U, U>("min.s16x2 d, a, b;", halves<H>([](H a, H b) { return std::min(a, b); }));
    check_lanes<U, U, U>("max.s16x2 d, a, b;", halves<H>([](H a, H b) { return std::max(a, b); }));
    check_lanes<U, U, U>("min.relu.s16x2 d, a, b;", halves<H>([](H a, H b) { return std::max<H>(std::min(a, b), 0); }));
    check_lanes<U, U, U>("max.relu.s16x2 d, a, b;", halves<H>([](H a, H b) { return std::max<H>(std::max(a, b), 0); }));
    check_lanes<S, S, S>("min.relu.s32 d, a, b;", [](S a, S b) { return std::max(std::min(a, b), 0); });
    check_lanes<S, S, S>("max.relu.s32 d, a, b;", [](S a, S b) { return std::max(std::max(a, b), 0); });
}

TEST_CASE("dot products of bytes and half-words")
{
    const auto byte = [](U word, unsigned i, bool is_signed) {
        const auto bits = static_cast<std::uint8_t>(word >> (8 * i));
        return is_signed ? Wide{static_cast<std::int8_t>(bits)} : Wide{bits};
    };
    const auto half = [](U word, unsigned i, bool is_signed) {
        const auto bits = static_cast<std::uint16_t>(word >> (16 * i));
        return is_signed ? Wide{static_cast<std::int16_t>(bits)} : Wide{bits};
    };
    for (const bool a_signed : {false, true}) {
        for (const bool b_signed : {false, true}) {
            const std::string types = std::string(a_signed ? ".s32" : ".u32") + (b_signed ? ".s32" : ".u32");
            check_lanes<U, U, U, U>("dp4a" + types + " d, a, b, c;", [=](U a, U b, U c) {
                Wide sum = c;
                for (unsigned i = 0; i < 4; ++i) {
                    sum += byte(a, i, a_signed) * byte(b, i, b_signed);
                }
                return cut<U>(sum);
            });
            for (const bool high : {false, true}) {
                check_lanes<U, U, U, U>((high ? "dp2a.hi" : "dp2a.lo") + types + " d, a, b, c;", [=](U a, U b, U c) {
                    const unsigned first = high ? 2 : 0;
                    return cut<U>(Wide{c} + half(a, 0, a_signed) * byte(b, first, b_signed) +
                                  half(a, 1, a_signed) * byte(b, first + 1, b_signed));
                });
            }
        }
    }
}

TEST_CASE("additions with carry compute 128-bit sums")
{
    using L = std::uint64_t;
    // The low halves come first; d is the high half of (b:a) + (f:c) or their difference.
    const Surroundings low{.before = ".reg .b64 low;"};
    const auto both = [](L high, L low_bits) { return Bits{high} << 64 | low_bits; };
    check_lanes<L, L, L, L, L>(
        "add.cc.u64 low, a, c; addc.u64 d, b, e;",
        [=](L a, L b, L c, L e) { return static_cast<L>((both(b, a) + both(e, c)) >> 64); }, low);
    check_lanes<L, L, L, L, L>(
        "sub.cc.u64 low, a, c; subc.u64 d, b, e;",
        [=](L a, L b, L c, L e) { return static_cast<L>((both(b, a) - both(e, c)) >> 64); }, low);
    // Three words of 32 bits: the middle one receives a carry and produces one.
    const auto word_sum = [](U a, U b, U c, U e) { return ((L{b} << 32 | a) + (L{e} << 32 | c)) < (L{b} << 32 | a); };
    const Surroundings words{.before = ".reg .b32 x, y;"};
    check_lanes<U, U, U, U, U>(
        "add.cc.u32 x, a, c; addc.cc.u32 y, b, e; addc.u32 d, 0, 0;",
        [=](U a, U b, U c, U e) { return word_sum(a, b, c, e) ? 1u : 0u; }, words);
    check_lanes<U, U, U, U, U>(
        "sub.cc.s32 x, a, c; subc.cc.s32 y, b, e; subc.s32 d, 0, 0;",
        [=](U a, U b, U c, U e) { return (L{b} << 32 | a) < (L{e} << 32 | c) ? ~0u : 0u; }, words);
}

TEST_CASE("multiply-add with carry computes a 128-bit product")
{
    using L = std::uint64_t;
    // d = high half of a * b + (c, 0) + carry of the low half.
    const Surroundings low{.before = ".reg .b64 low;"};
    check_lanes<L, L, L, L>(
        "mad.lo.cc.u64 low, a, b, c; madc.hi.u64 d, a, b, 0;",
        [](L a, L b, L c) { return static_cast<L>((Bits{a} * b + c) >> 64); }, low);
    const Surroundings words{.before = ".reg .b32 x, y;"};
    check_lanes<U, U, U, U>(
        "mad.lo.cc.u32 x, a, b, c; madc.hi.cc.u32 y, a, b, -1; addc.u32 d, 0, 0;",
        [](U a, U b, U c) {
            const L high = (L{a} * b >> 32) + 0xFFFFFFFFu + (((L{a} * b & 0xFFFFFFFF) + c) >> 32);
            return static_cast<U>(high >> 32);
        },
        words);
    check_lanes<S, S, S, S>(
        "mad.lo.cc.s32 x, a, b, c; madc.hi.s32 d, a, b, 0;",
        [](S a, S b, S c) {
            const auto product = static_cast<L>(std::int64_t{a} * b);
            return static_cast<S>((product >> 32) + (((product & 0xFFFFFFFF) + static_cast<U>(c)) >> 32));
        },
        words);
}

TEST_CASE("division by zero is no finding if nothing uses the result")
{
    // Compilers divide first and select later.
    const auto findings = [](const std::string& use) {
        PtxRun run(module_text("sm_90", R"(
.visible .entry k(.param .u64 out)
{
    .reg .b32 x, y, z; .reg .b64 p, q; .reg .pred zero;
    ld.param.u64 p, [out];
    mov.u32 y, %tid.x;
    mul.wide.u32 q, y, 4;
    add.u64 p, p, q;
    setp.eq.u32 zero, y, 0;
    mov.u32 x, 7;
    rem.u32 z, x, y;
    div.u32 x, x, y;
    add.u32 x, x, z;
)" + use + "\n    ret;\n}\n"),
                   "h200");
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(32));
        CHECK(run.launch("k", {}, out).code == 0);
        for (const Finding& finding : run.report.findings()) {
            CHECK(finding.kind == FindingKind::invalid_operand);
            CHECK(finding.lanes == 1);
            CHECK(finding.message.find("division by zero") != std::string::npos);
            CHECK(finding.message.find("the value is used by") != std::string::npos);
        }
        return run.report.findings().size();
    };
    CHECK(findings("") == 0);
    CHECK(findings("selp.b32 x, 1, x, zero; st.global.u32 [p], x;") == 0);
    CHECK(findings("@!zero st.global.u32 [p], x;") == 0);
    CHECK(findings("st.global.u32 [p], x;") == 1);
    CHECK(findings("selp.b32 x, x, 1, zero; st.global.u32 [p], x;") == 1);
}

TEST_CASE("division by zero is reported")
{
    PtxRun run(
        module_text(
            "sm_90",
            ".visible .entry k(.param .u64 out, .param .u32 by)\n{ .reg .b32 x, y; .reg .b64 p; ld.param.u64 p, [out]; "
            "ld.param.u32 y, [by]; mov.u32 x, 7; div.s32 x, x, y; st.global.u32 [p], x; ret; }"),
        "h200");
    const std::uint64_t out = run.uninitialized(4);
    CHECK(run.launch("k", {.block = {1, 1, 1}}, out, 2u).code == 0);
    CHECK(run.read<std::uint32_t>(out, 1)[0] == 3);
    CHECK(run.count(FindingKind::invalid_operand) == 0);
    CHECK(run.launch("k", {.block = {1, 1, 1}}, out, 0u).code == 0);
    CHECK(run.count(FindingKind::invalid_operand) == 1);
}
