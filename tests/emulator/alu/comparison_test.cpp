// setp, set, selp, slct, testp.

#include <cmath>
#include <limits>

#include "one_instruction.hpp"

namespace {

using namespace tessera::emulator;
using namespace tessera::emulator::test;

using H = std::uint16_t;
using U = std::uint32_t;
using S = std::int32_t;

const Surroundings to_value{.before = "setp.ne.u32 p, 0, 0; setp.ne.u32 r, t3, t3;", .after = "selp.u32 d, 1, 0, p;"};

/// -1, 0, 1 if a is less, equal, greater; 2 if they are unordered.
template <typename T>
int order(T a, T b)
{
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isunordered(a, b)) {
            return 2;
        }
    }
    return a < b ? -1 : a == b ? 0 : 1;
}

bool related(const std::string& name, int order)
{
    if (name == "num" || name == "nan") {
        return (order == 2) == (name == "nan");
    }
    const bool unordered_counts = name.size() == 3;
    if (order == 2) {
        return unordered_counts;
    }
    const std::string stem = name.substr(0, 2);
    return stem == "eq"                   ? order == 0
           : stem == "ne"                 ? order != 0
           : stem == "lt" || stem == "lo" ? order < 0
           : stem == "le" || stem == "ls" ? order <= 0
           : stem == "gt" || stem == "hi" ? order > 0
                                          : order >= 0;
}

template <typename T>
void check_setp(const char* type, std::initializer_list<const char*> names)
{
    for (const std::string name : names) {
        // The guarded run leaves d of the even lanes at 0, because p starts false and selp is not guarded.
        const std::string text = "setp." + name + "." + type + " p, a, b;";
        std::mt19937_64 random(7);
        std::vector<std::tuple<T, T>> operands;
        for (int i = 0; i < 512; ++i) {
            const T a = any_operand<T>(random);
            operands.emplace_back(a, random() % 4 == 0 ? a : any_operand<T>(random));
        }
        for (const bool guarded : {false, true}) {
            const std::vector<U> values = results_of<U, T, T>(text, operands, to_value, guarded);
            std::size_t wrong = 0;
            for (std::size_t i = 0; i < operands.size(); ++i) {
                const auto& [a, b] = operands[i];
                wrong += values[i] != static_cast<U>(related(name, order(a, b)) && !(guarded && i % 2 == 0));
            }
            INFO(text);
            CHECK(wrong == 0);
        }
    }
}

}  // namespace

TEST_CASE("setp of every type and comparison")
{
    check_setp<std::uint16_t>("u16", {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"});
    check_setp<std::uint32_t>("u32", {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"});
    check_setp<std::uint64_t>("u64", {"eq", "ne", "lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"});
    check_setp<std::int16_t>("s16", {"eq", "ne", "lt", "le", "gt", "ge"});
    check_setp<std::int32_t>("s32", {"eq", "ne", "lt", "le", "gt", "ge"});
    check_setp<std::int64_t>("s64", {"eq", "ne", "lt", "le", "gt", "ge"});
    check_setp<std::uint16_t>("b16", {"eq", "ne"});
    check_setp<std::uint32_t>("b32", {"eq", "ne"});
    check_setp<std::uint64_t>("b64", {"eq", "ne"});
    const auto floats = {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};
    check_setp<float>("f32", floats);
    check_setp<double>("f64", floats);
}

TEST_CASE("setp of 16-bit floating point orders by value")
{
    struct Value {
        H f16, bf16;
        double number;
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const double infinity = std::numeric_limits<double>::infinity();
    const std::vector<Value> values{{0x0000, 0x0000, 0.0},      {0x8000, 0x8000, -0.0}, {0x3C00, 0x3F80, 1.0},
                                    {0xC000, 0xC000, -2.0},     {0x0001, 0x0001, 1e-9}, {0x8001, 0x8001, -1e-9},
                                    {0x7C00, 0x7F80, infinity}, {0x7E01, 0x7FC1, nan}};
    for (const std::string name :
         {"eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}) {
        std::vector<std::tuple<H, H>> f16, bf16;
        std::vector<std::tuple<U, U>> f16x2, bf16x2;
        std::vector<U> expected, flushed, high;
        for (const Value& x : values) {
            for (const Value& y : values) {
                f16.emplace_back(x.f16, y.f16);
                bf16.emplace_back(x.bf16, y.bf16);
                // The high half compares the other way round.
                f16x2.emplace_back(x.f16 | U{y.f16} << 16, y.f16 | U{x.f16} << 16);
                bf16x2.emplace_back(x.bf16 | U{y.bf16} << 16, y.bf16 | U{x.bf16} << 16);
                expected.push_back(related(name, order(x.number, y.number)));
                high.push_back(related(name, order(y.number, x.number)));
                const auto flush = [](double v) { return std::fabs(v) < 1e-6 ? 0.0 : v; };
                flushed.push_back(related(name, order(flush(x.number), flush(y.number))));
            }
        }
        INFO(name);
        CHECK(results_of<U, H, H>("setp." + name + ".f16 p, a, b;", f16, to_value) == expected);
        CHECK(results_of<U, H, H>("setp." + name + ".ftz.f16 p, a, b;", f16, to_value) == flushed);
        CHECK(results_of<U, H, H>("setp." + name + ".bf16 p, a, b;", bf16, to_value) == expected);
        CHECK(results_of<U, U, U>("setp." + name + ".f16x2 p|q, a, b;", f16x2, to_value) == expected);
        CHECK(results_of<U, U, U>("setp." + name + ".f16x2 q|p, a, b;", f16x2, to_value) == high);
        CHECK(results_of<U, U, U>("setp." + name + ".bf16x2 q|p, a, b;", bf16x2, to_value) == high);
        std::vector<U> packed, packed_one;
        for (std::size_t i = 0; i < expected.size(); ++i) {
            packed.push_back((expected[i] != 0 ? 0xFFFFu : 0u) | (high[i] != 0 ? 0xFFFF0000u : 0u));
            packed_one.push_back((expected[i] != 0 ? 0x3C00u : 0u) | (high[i] != 0 ? 0x3C000000u : 0u));
        }
        CHECK(results_of<U, U, U>("set." + name + ".u32.f16x2 d, a, b;", f16x2) == packed);
        CHECK(results_of<U, U, U>("set." + name + ".f16x2.f16x2 d, a, b;", f16x2) == packed_one);
    }
}

TEST_CASE("setp with a second destination and Boolean operations")
{
    const std::vector<std::tuple<S, S, U>> operands{{1, 2, 0}, {1, 2, 1}, {2, 1, 0}, {2, 1, 1}};
    for (const std::string operation : {"and", "or", "xor"}) {
        for (const bool negated : {false, true}) {
            for (const bool second : {false, true}) {
                const Surroundings around{.before = "setp.ne.u32 r, c, 0;",
                                          .after = std::string("selp.u32 d, 1, 0, ") + (second ? "q;" : "p;")};
                const auto values = results_of<U, S, S, U>(
                    "setp.lt." + operation + ".s32 p|q, a, b, " + (negated ? "!r;" : "r;"), operands, around);
                for (std::size_t i = 0; i < operands.size(); ++i) {
                    const auto& [a, b, c] = operands[i];
                    const bool left = (a < b) != second;
                    const bool right = (c != 0) != negated;
                    CHECK(values[i] == static_cast<U>(operation == "and"  ? left && right
                                                      : operation == "or" ? left || right
                                                                          : left != right));
                }
            }
        }
    }
    // q may also be the operand of the Boolean operation.
    const Surroundings around{.before = "setp.ne.u32 q, c, 0;",
                              .after = "selp.u32 d, 1, 0, q; selp.u32 t0, 2, 0, p; or.b32 d, d, t0;"};
    CHECK(results_of<U, S, S, U>("setp.lt.and.s32 p|q, a, b, q;", operands, around) == std::vector<U>{0, 2, 0, 1});
}

TEST_CASE("set gives all bits or one")
{
    check_lanes<U, S, S>("set.lt.u32.s32 d, a, b;", [](S a, S b) { return a < b ? ~0u : 0u; });
    check_lanes<U, float, float>("set.geu.s32.f32 d, a, b;", [](float a, float b) { return !(a < b) ? ~0u : 0u; });
    check_lanes<float, U, U>("set.hi.f32.u32 d, a, b;", [](U a, U b) { return a > b ? 1.0F : 0.0F; });
    check_lanes<H, S, S>("set.le.f16.s32 d, a, b;", [](S a, S b) { return a <= b ? H{0x3C00} : H{0}; });
    check_lanes<H, S, S>("set.le.bf16.s32 d, a, b;", [](S a, S b) { return a <= b ? H{0x3F80} : H{0}; });
    check_lanes<U, double, double>("set.num.u32.f64 d, a, b;",
                                   [](double a, double b) { return std::isunordered(a, b) ? 0u : ~0u; });
    check_lanes<H, H, H>("set.nan.u16.f16 d, a, b;",
                         [](H a, H b) { return (a & 0x7FFF) > 0x7C00 || (b & 0x7FFF) > 0x7C00 ? H{0xFFFF} : H{0}; });
    const Surroundings predicate{.before = "setp.eq.u32 p, c, 0;"};
    check_lanes<U, S, S, U>(
        "set.eq.xor.u32.s32 d, a, b, !p;", [](S a, S b, U c) { return (a == b) != (c != 0) ? ~0u : 0u; }, predicate);
    check_lanes<float, float, float>("set.gt.ftz.f32.f32 d, a, b;", [](float a, float b) {
        const auto flush = [](float x) { return std::fabs(x) < std::numeric_limits<float>::min() ? 0.0F : x; };
        return flush(a) > flush(b) ? 1.0F : 0.0F;
    });
}

TEST_CASE("selp and slct")
{
    const Surroundings odd{.before = "and.b32 t0, c, 1; setp.ne.u32 p, t0, 0;"};
    check_lanes<U, U, U, U>("selp.b32 d, a, b, p;", [](U a, U b, U c) { return (c & 1) != 0 ? a : b; }, odd);
    check_lanes<U, U, U, U>("selp.s32 d, a, b, !p;", [](U a, U b, U c) { return (c & 1) != 0 ? b : a; }, odd);
    check_lanes<H, H, H, U>("selp.u16 d, a, b, p;", [](H a, H b, U c) { return (c & 1) != 0 ? a : b; }, odd);
    check_lanes<double, double, double, U>(
        "selp.f64 d, a, b, p;", [](double a, double b, U c) { return (c & 1) != 0 ? a : b; }, odd);
    check_lanes<float, float, float, U>(
        "selp.f32 d, a, 0f3F800000, p;", [](float a, float, U c) { return (c & 1) != 0 ? a : 1.0F; }, odd);
    check_lanes<U, U, U, S>("slct.u32.s32 d, a, b, c;", [](U a, U b, S c) { return c >= 0 ? a : b; });
    check_lanes<double, double, double, float>("slct.f64.f32 d, a, b, c;",
                                               [](double a, double b, float c) { return c >= 0 ? a : b; });
    check_lanes<H, H, H, S>("slct.b16.s32 d, a, b, c;", [](H a, H b, S c) { return c >= 0 ? a : b; });
    check_lanes<U, U, U, float>("slct.ftz.b32.f32 d, a, b, c;", [](U a, U b, float c) {
        return c >= 0 || std::fabs(c) < std::numeric_limits<float>::min() ? a : b;
    });
}

TEST_CASE("testp")
{
    const auto check = [](const char* name, auto f) {
        const Surroundings around{.before = "setp.ne.u32 p, 0, 0;", .after = "selp.u32 d, 1, 0, p;"};
        std::mt19937_64 random(3);
        std::vector<std::tuple<float>> narrow;
        std::vector<std::tuple<double>> wide;
        for (int i = 0; i < 256; ++i) {
            narrow.emplace_back(any_operand<float>(random));
            wide.emplace_back(any_operand<double>(random));
        }
        const auto values = results_of<U, float>(std::string("testp.") + name + ".f32 p, a;", narrow, around);
        const auto wide_values = results_of<U, double>(std::string("testp.") + name + ".f64 p, a;", wide, around);
        for (std::size_t i = 0; i < values.size(); ++i) {
            CHECK(values[i] == static_cast<U>(f(std::fpclassify(std::get<0>(narrow[i])))));
            CHECK(wide_values[i] == static_cast<U>(f(std::fpclassify(std::get<0>(wide[i])))));
        }
    };
    check("finite", [](int c) { return c != FP_NAN && c != FP_INFINITE; });
    check("infinite", [](int c) { return c == FP_INFINITE; });
    check("number", [](int c) { return c != FP_NAN; });
    check("notanumber", [](int c) { return c == FP_NAN; });
    check("normal", [](int c) { return c == FP_NORMAL; });
    check("subnormal", [](int c) { return c == FP_SUBNORMAL; });
}
