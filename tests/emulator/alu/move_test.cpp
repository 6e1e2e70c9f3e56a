// mov: values, vectors, special registers.

#include "one_instruction.hpp"

namespace {

using namespace tessera::emulator;
using namespace tessera::emulator::test;

using B = std::uint8_t;
using H = std::uint16_t;
using U = std::uint32_t;
using L = std::uint64_t;

}  // namespace

TEST_CASE("mov of registers and constants")
{
    check_lanes<H, H>("mov.b16 d, a;", [](H a) { return a; });
    check_lanes<U, U>("mov.u32 d, a;", [](U a) { return a; });
    check_lanes<L, L>("mov.s64 d, a;", [](L a) { return a; });
    check_lanes<float, U>("mov.b32 d, a;", [](U a) { return std::bit_cast<float>(a); });
    check_lanes<U, float>("mov.b32 d, a;", [](float a) { return std::bit_cast<U>(a); });
    check_lanes<float, U>("mov.f32 d, 0f40490FDB;", [](U) { return std::bit_cast<float>(0x40490FDBu); });
    check_lanes<double, U>("mov.f64 d, 0d400921FB54442D18;",
                           [](U) { return std::bit_cast<double>(0x400921FB54442D18u); });
    check_lanes<L, U>("mov.u64 d, -2;", [](U) { return ~L{1}; });
}

TEST_CASE("mov packs and unpacks, least significant element first")
{
    check_lanes<H, B, B>("mov.b16 d, {a, b};", [](B a, B b) { return static_cast<H>(a | b << 8); });
    check_lanes<U, H, H>("mov.b32 d, {a, b};", [](H a, H b) { return a | U{b} << 16; });
    check_lanes<U, B, B, B, B>("mov.b32 d, {a, b, c, e};",
                               [](B a, B b, B c, B e) { return a | U{b} << 8 | U{c} << 16 | U{e} << 24; });
    check_lanes<L, U, U>("mov.b64 d, {a, b};", [](U a, U b) { return a | L{b} << 32; });
    check_lanes<L, U>("mov.b64 d, {a, 7};", [](U a) { return a | L{7} << 32; });
    check_lanes<L, H, H, H, H>("mov.b64 d, {a, b, c, e};",
                               [](H a, H b, H c, H e) { return a | L{b} << 16 | L{c} << 32 | L{e} << 48; });
    check_lanes<L, float, float>("mov.b64 d, {a, b};",
                                 [](float a, float b) { return std::bit_cast<U>(a) | L{std::bit_cast<U>(b)} << 32; });
    const Surroundings halves{.before = ".reg .b16 h<4>;"};
    check_lanes<H, U>("mov.b32 {_, d}, a;", [](U a) { return static_cast<H>(a >> 16); });
    check_lanes<H, U>("mov.b32 {d, h0}, a;", [](U a) { return static_cast<H>(a); }, halves);
    check_lanes<U, L>("mov.b64 {t0, d}, a;", [](L a) { return static_cast<U>(a >> 32); });
    check_lanes<H, L>("mov.b64 {h0, h1, d, h3}, a;", [](L a) { return static_cast<H>(a >> 32); }, halves);
    check_lanes<B, U>("mov.b32 {_, _, _, d}, a;", [](U a) { return static_cast<B>(a >> 24); });
    const Surroundings wide{.before = ".reg .b128 w, v; .reg .b64 x, y; mov.b64 x, a; mov.b64 y, b;"};
    check_lanes<L, L, L>("mov.b128 w, {x, y}; mov.b128 v, w; mov.b128 {_, d}, v;", [](L, L b) { return b; }, wide);
    check_lanes<L, L, L>("mov.b128 w, {x, y}; mov.b128 {d, y}, w;", [](L a, L) { return a; }, wide);
    check_lanes<U, L, L>(
        "mov.b128 w, {x, y}; mov.b128 {t0, d, t1, t2}, w;", [](L a, L) { return static_cast<U>(a >> 32); }, wide);
}

TEST_CASE("special registers")
{
    std::vector<std::tuple<U>> lanes(64);
    const auto at = [&](const std::string& text, std::size_t thread) { return results_of<U, U>(text, lanes)[thread]; };
    CHECK(at("mov.u32 d, %tid.x;", 37) == 5);
    CHECK(at("mov.u32 d, %ctaid.x;", 37) == 1);
    CHECK(at("mov.u32 d, %ntid.x;", 37) == 32);
    CHECK(at("mov.u32 d, %nctaid.x;", 37) == 2);
    CHECK(at("mov.u32 d, %laneid;", 37) == 5);
    CHECK(at("mov.u32 d, %lanemask_lt;", 37) == 31);
    CHECK(at("mov.v4.u32 {d, t0, t1, t2}, %tid;", 37) == 5);
    CHECK(at("mov.v4.u32 {t0, d, t1, t2}, %ntid;", 37) == 1);
    CHECK(at("mov.v4.u32 {t0, t1, t2, d}, %ntid;", 37) == 0);
    CHECK(results_of<H, U>("mov.u16 d, %tid.x;", lanes)[37] == 5);
    for (const std::string name : {"%pm3", "%envreg7", "%reserved_smem_offset_begin"}) {
        CHECK(at("mov.b32 d, " + name + ";", 0) == 0);
    }
    CHECK(at("mov.u32 d, %reserved_smem_offset_end;", 0) == 0x400);
}

TEST_CASE("clocks advance, equally in each run")
{
    std::vector<std::tuple<L>> lanes(32);
    for (const std::string name : {"%clock64", "%globaltimer"}) {
        const std::string text = "mov.u64 x, " + name + "; mov.u64 y, " + name + "; sub.u64 d, y, x;";
        const auto passed = results_of<L, L>(text, lanes, {.before = ".reg .b64 x, y;"});
        INFO(name);
        CHECK(passed[0] > 0);
        CHECK(passed == results_of<L, L>(text, lanes, {.before = ".reg .b64 x, y;"}));
    }
    const auto low = results_of<U, L>("mov.u32 t0, %clock; mov.u32 t1, %clock; sub.u32 d, t1, t0;", lanes);
    CHECK(low[0] > 0);
    CHECK(results_of<U, L>("mov.u32 d, %clock_hi;", lanes)[0] == 0);
    CHECK(
        results_of<U, L>("mov.u64 x, %globaltimer; mov.u32 t0, %globaltimer_hi; mov.b64 {_, t1}, x; sub.u32 d, t1, t0;",
                         lanes, {.before = ".reg .b64 x;"})[0] == 0);
    // A loop that waits for the clock ends.
    const auto waited =
        results_of<L, L>("WAIT: mov.u64 y, %clock64; sub.u64 d, y, x; setp.lt.u64 p, d, 100000; @p bra WAIT;", lanes,
                         {.before = ".reg .b64 x, y; mov.u64 x, %clock64;"});
    CHECK(waited[0] >= 100000);
}
