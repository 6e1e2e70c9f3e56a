#include <bit>
#include <cmath>
#include <limits>

#include "lane_kernel.hpp"

namespace tessera::emulator::test {

namespace {

/// The definition of one atomic operation: the value at the address and the operand give the new value. All as 64 bits.
using Definition = std::function<std::uint64_t(std::uint64_t old, std::uint64_t operand)>;

template <typename T>
Definition of(T (*f)(T, T))
{
    return [f](std::uint64_t a, std::uint64_t b) {
        T x, y;
        std::memcpy(&x, &a, sizeof(T));
        std::memcpy(&y, &b, sizeof(T));
        const T z = f(x, y);
        std::uint64_t result = 0;
        std::memcpy(&result, &z, sizeof(T));
        return result;
    };
}

struct Atomic {
    std::string operation;  // "add.u32"
    unsigned bytes;
    Definition definition;
};

const std::vector<Atomic>& atomics()
{
    using u32 = std::uint32_t;
    using s32 = std::int32_t;
    using u64 = std::uint64_t;
    using s64 = std::int64_t;
    static const std::vector<Atomic> all{
        {"add.u32", 4, of<u32>([](u32 a, u32 b) { return a + b; })},
        {"add.s32", 4, of<u32>([](u32 a, u32 b) { return a + b; })},
        {"add.u64", 8, of<u64>([](u64 a, u64 b) { return a + b; })},
        {"min.u32", 4, of<u32>([](u32 a, u32 b) { return a < b ? a : b; })},
        {"min.s32", 4, of<s32>([](s32 a, s32 b) { return a < b ? a : b; })},
        {"min.u64", 8, of<u64>([](u64 a, u64 b) { return a < b ? a : b; })},
        {"min.s64", 8, of<s64>([](s64 a, s64 b) { return a < b ? a : b; })},
        {"max.u32", 4, of<u32>([](u32 a, u32 b) { return a > b ? a : b; })},
        {"max.s32", 4, of<s32>([](s32 a, s32 b) { return a > b ? a : b; })},
        {"max.u64", 8, of<u64>([](u64 a, u64 b) { return a > b ? a : b; })},
        {"max.s64", 8, of<s64>([](s64 a, s64 b) { return a > b ? a : b; })},
        {"and.b32", 4, of<u32>([](u32 a, u32 b) { return a & b; })},
        {"and.b64", 8, of<u64>([](u64 a, u64 b) { return a & b; })},
        {"or.b32", 4, of<u32>([](u32 a, u32 b) { return a | b; })},
        {"or.b64", 8, of<u64>([](u64 a, u64 b) { return a | b; })},
        {"xor.b32", 4, of<u32>([](u32 a, u32 b) { return a ^ b; })},
        {"xor.b64", 8, of<u64>([](u64 a, u64 b) { return a ^ b; })},
        {"inc.u32", 4, of<u32>([](u32 a, u32 b) { return a >= b ? 0 : a + 1; })},
        {"dec.u32", 4, of<u32>([](u32 a, u32 b) { return a == 0 || a > b ? b : a - 1; })},
        {"exch.b32", 4, of<u32>([](u32, u32 b) { return b; })},
        {"exch.b64", 8, of<u64>([](u64, u64 b) { return b; })},
    };
    return all;
}

std::uint64_t masked(std::uint64_t value, unsigned bytes) { return bytes == 8 ? value : value & 0xFFFFFFFF; }

/// A word of `bytes` bytes that 32 lanes update in turn: what each received, and the final value.
struct History {
    std::vector<std::uint64_t> before;
    std::uint64_t last = 0;
};

History history(const Atomic& atomic, const std::vector<Slot>& input, std::uint64_t initial)
{
    History h;
    std::uint64_t value = masked(initial, atomic.bytes);
    for (const Slot& slot : input) {
        h.before.push_back(value);
        value = masked(atomic.definition(value, masked(get<std::uint64_t>(slot), atomic.bytes)), atomic.bytes);
    }
    h.last = value;
    return h;
}

/// Two operands per lane from floats of each kind.
std::vector<Slot> slots(const std::vector<std::uint32_t>& words)
{
    std::vector<Slot> result(32);
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < 16; ++i) {
            put(result[lane], words[(lane * 16 + i) % words.size()], 4 * i);
        }
    }
    return result;
}

// An f16 or bf16 addition in double, which is exact, rounded once by the host's conversions to float where exact.
std::uint16_t half_of(double value)  // of values that f16 holds exactly
{
    const int exponent = value == 0 ? 0 : std::ilogb(value);
    if (value == 0) {
        return std::signbit(value) ? 0x8000 : 0;
    }
    const std::uint16_t sign = value < 0 ? 0x8000 : 0;
    const double magnitude = std::fabs(value);
    if (exponent < -14) {
        return static_cast<std::uint16_t>(sign | static_cast<std::uint16_t>(magnitude * 0x1p24));
    }
    return static_cast<std::uint16_t>(sign | (exponent + 15) << 10 |
                                      static_cast<int>((magnitude / std::ldexp(1.0, exponent) - 1) * 1024));
}

std::uint16_t bf16_of(double value)
{
    return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16);
}

}  // namespace

TEST_CASE("atom of every integer operation, all lanes on one word of global memory, lowest lane first")
{
    for (const Atomic& atomic : atomics()) {
        CAPTURE(atomic.operation);
        for (const std::string space :
             {".global", "", ".relaxed.gpu.global", ".acq_rel.sys", ".acquire.cta.global", ".release.cluster"}) {
            const std::string reg = atomic.bytes == 4 ? "%r" : "%d";
            const std::string b = std::to_string(8 * atomic.bytes);
            // All lanes use the last lane's input at byte 32: %all + 31 * 64 + 32.
            const std::string body = "ld.global.b" + b + " " + reg + "1, [%in]; atom" + space + "." + atomic.operation +
                                     " " + reg + "2, [%all+2016], " + reg + "1; st.global.b" + b + " [%out], " + reg +
                                     "2;";
            const LaneResult result = run_lanes(lane_kernel(body));
            INFO(result.launch.message, result.report);
            REQUIRE(result.launch.code == 0);
            CHECK(result.findings.empty());
            const std::vector<Slot> input = lane_input();
            const History expected = history(atomic, input, get<std::uint64_t>(input[31], 32));
            for (unsigned lane = 0; lane < 32; ++lane) {
                CHECK(masked(get<std::uint64_t>(result.output[lane]), atomic.bytes) == expected.before[lane]);
            }
            CHECK(masked(get<std::uint64_t>(result.input[31], 32), atomic.bytes) == expected.last);
            CHECK(std::equal(result.input[31].begin() + 32 + atomic.bytes, result.input[31].end(),
                             input[31].begin() + 32 + atomic.bytes));
        }
    }
}

TEST_CASE("atom and red of every integer operation on shared memory, also through generic addresses")
{
    for (const Atomic& atomic : atomics()) {
        CAPTURE(atomic.operation);
        const std::string reg = atomic.bytes == 4 ? "%r" : "%d";
        const std::string b = std::to_string(8 * atomic.bytes);
        const std::vector<Slot> input = lane_input();
        const History expected = history(atomic, input, get<std::uint64_t>(input[0], 8));
        for (const std::string form : {".shared", ".shared::cta", ".shared::cluster", "generic"}) {
            const bool generic = form == "generic";
            const std::string address = generic ? "[%d9]" : "[%r9]";
            const std::string prepare =
                ".shared .align 8 .b64 word; mov.b32 %r9, word; mov.b64 %d9, word; cvta.shared.u64 %d9, %d9;"
                "ld.global.b" +
                b + " " + reg + "1, [%in]; ld.global.b64 %d3, [%all+8]; st.shared.b64 [word], %d3;";
            const std::string finish =
                "ld.shared.b" + b + " " + reg + "4, [word]; st.global.b" + b + " [%out+8], " + reg + "4;";
            const std::string atom = "atom" + (generic ? "" : form) + "." + atomic.operation + " " + reg + "2, " +
                                     address + ", " + reg + "1; st.global.b" + b + " [%out], " + reg + "2;";
            const LaneResult result = run_lanes(lane_kernel(prepare + atom + finish));
            INFO(result.launch.message, result.report);
            REQUIRE(result.launch.code == 0);
            CHECK(result.findings.empty());
            for (unsigned lane = 0; lane < 32; ++lane) {
                CHECK(masked(get<std::uint64_t>(result.output[lane]), atomic.bytes) == expected.before[lane]);
                CHECK(masked(get<std::uint64_t>(result.output[lane], 8), atomic.bytes) == expected.last);
            }
            if (atomic.operation.starts_with("exch")) {
                continue;  // red has none
            }
            const std::string red =
                "red" + (generic ? "" : form) + "." + atomic.operation + " " + address + ", " + reg + "1;";
            const LaneResult reduced = run_lanes(lane_kernel(prepare + red + finish));
            REQUIRE(reduced.launch.code == 0);
            CHECK(masked(get<std::uint64_t>(reduced.output[7], 8), atomic.bytes) == expected.last);
        }
    }
}

TEST_CASE("compare and swap works in each width")
{
    for (const unsigned bytes : {2u, 4u, 8u, 16u}) {
        const std::string reg = bytes == 2 ? "%h" : bytes == 4 ? "%r" : bytes == 8 ? "%d" : "%q";
        const std::string b = std::to_string(8 * bytes);
        // Each lane: once with the right value, once with a wrong one. Each lane has its own place.
        const std::string body = "ld.global.b" + b + " " + reg + "1, [%in]; ld.global.b" + b + " " + reg +
                                 "2, [%in+16]; atom.global.cas.b" + b + " " + reg + "3, [%in], " + reg + "1, " + reg +
                                 "2; st.global.b" + b + " [%out], " + reg + "3; atom.cas.b" + b + " " + reg +
                                 "4, [%in+32], " + reg + "1, " + reg + "2; st.global.b" + b + " [%out+16], " + reg +
                                 "4;";
        const LaneResult result = run_lanes(lane_kernel(body));
        INFO(body, result.launch.message, result.report);
        REQUIRE(result.launch.code == 0);
        const std::vector<Slot> input = lane_input();
        for (unsigned lane = 0; lane < 32; ++lane) {
            Slot memory = input[lane];
            std::memcpy(memory.data(), input[lane].data() + 16, bytes);
            CHECK(result.input[lane] == memory);
            CHECK(std::memcmp(result.output[lane].data(), input[lane].data(), bytes) == 0);
            CHECK(std::memcmp(result.output[lane].data() + 16, input[lane].data() + 32, bytes) == 0);
        }
    }
    const LaneResult exchanged = run_lanes(lane_kernel(
        "ld.global.b128 %q1, [%in]; atom.global.exch.b128 %q2, [%in+16], %q1; st.global.b128 [%out], %q2;"));
    REQUIRE(exchanged.launch.code == 0);
    const std::vector<Slot> input = lane_input();
    for (unsigned lane = 0; lane < 32; ++lane) {
        CHECK(std::memcmp(exchanged.output[lane].data(), input[lane].data() + 16, 16) == 0);
        CHECK(std::memcmp(exchanged.input[lane].data() + 16, input[lane].data(), 16) == 0);
    }
}

TEST_CASE("the register of the address, of the operand and of the result may be the same")
{
    check_lanes(
        "mov.b64 %d1, %in; ld.global.b64 %d2, [%in]; atom.global.exch.b64 %d1, [%d1], %d1; sub.s64 %d1, %d1, %d2; "
        "st.global.b64 [%out], %d1;"
        "atom.global.exch.b32 _, [%in], 3;",
        [](unsigned, const Slot&, Slot& out) { put(out, std::uint64_t{0}); });
}

TEST_CASE(
    "f32 addition: rounded to nearest even, lane by lane; subnormals are flushed in global memory, not in shared "
    "memory")
{
    const std::vector<std::uint32_t> words{0x3F800000, 0x33800000, 0x4B800001, 0xBF800000,
                                           0x7F000000, 0x00000001, 0x80000001, 0x007FFFFF};
    const std::vector<Slot> input = slots(words);
    const auto flushed = [](float x) { return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0F, x) : x; };
    for (const bool shared : {false, true}) {
        for (const bool generic : {false, true}) {
            const std::string space = generic ? "" : shared ? ".shared" : ".global";
            const std::string address = !shared ? "[%in+32]" : generic ? "[%d9]" : "[%r9]";
            const std::string body =
                ".shared .b32 words[32]; mov.b32 %r9, words; mad.lo.u32 %r9, %lane, 4, %r9; cvt.u64.u32 %d9, %r9; "
                "cvta.shared.u64 %d9, %d9;"
                "ld.global.f32 %f1, [%in]; ld.global.f32 %f2, [%in+32]; st.shared.f32 [%r9], %f2;"
                "atom" +
                space + ".add.f32 %f3, " + address +
                ", %f1; st.global.f32 [%out], %f3;"
                "ld.global.f32 %f1, [%in+4]; red" +
                space + ".add.f32 " + address +
                ", %f1;"
                "ld.global.f32 %f1, [%in+20]; red" +
                space + ".add.f32 " + address +
                ", %f1;"
                "ld.f32 %f4, " +
                (shared ? std::string("[%d9]") : address) + "; st.global.f32 [%out+4], %f4;";
            const LaneResult result = run_lanes(lane_kernel(body), input);
            INFO(body, result.launch.message, result.report);
            REQUIRE(result.launch.code == 0);
            for (unsigned lane = 0; lane < 32; ++lane) {
                CHECK(get<std::uint32_t>(result.output[lane]) == get<std::uint32_t>(input[lane], 32));
                float value = get<float>(input[lane], 32);
                for (const unsigned at : {0u, 4u, 20u}) {
                    const float operand = get<float>(input[lane], at);
                    value = shared ? value + operand : flushed(flushed(value) + flushed(operand));
                }
                CHECK(get<std::uint32_t>(result.output[lane], 4) == std::bit_cast<std::uint32_t>(value));
            }
        }
    }
}

TEST_CASE("32 lanes add f32 to one word in lane order")
{
    std::vector<Slot> input(32);
    float sum = 1.0F;
    for (unsigned lane = 0; lane < 32; ++lane) {
        put(input[lane], std::ldexp(1.0F + static_cast<float>(lane) / 7, static_cast<int>(lane % 5) * 6 - 12));
        put(input[lane], 1.0F, 32);
        sum += get<float>(input[lane]);
    }
    const LaneResult result =
        run_lanes(lane_kernel("ld.global.f32 %f1, [%in]; red.global.add.f32 [%all+32], %f1;"), input);
    REQUIRE(result.launch.code == 0);
    CHECK(get<float>(result.input[0], 32) == sum);
}

TEST_CASE("f64 addition")
{
    std::vector<Slot> input(32);
    const double values[] = {1.0,  0x1p-53,  -0x1.8p-1074, 1e308, std::numeric_limits<double>::infinity(),
                             3.25, 0x1p-1074};
    for (unsigned lane = 0; lane < 32; ++lane) {
        put(input[lane], values[lane % 7]);
        put(input[lane], values[lane / 2 % 7], 8);
    }
    const LaneResult result = run_lanes(
        lane_kernel("ld.global.f64 %e1, [%in]; atom.global.add.f64 %e2, [%in+8], %e1; st.global.f64 [%out], %e2;"),
        input);
    REQUIRE(result.launch.code == 0);
    for (unsigned lane = 0; lane < 32; ++lane) {
        CHECK(get<double>(result.output[lane]) == get<double>(input[lane], 8));
        CHECK(get<double>(result.input[lane], 8) == get<double>(input[lane], 8) + get<double>(input[lane]));
    }
}

TEST_CASE("f16, bf16 and packed additions, subnormals kept")
{
    const double values[] = {1,       2.5,      -3,  0.125,
                             0x1p-24, -0x1p-20, 512, -0.75};  // sums of two are exact in both formats, or tested below
    for (const bool brain : {false, true}) {
        const auto code = brain ? bf16_of : half_of;
        const std::string type = brain ? "bf16" : "f16";
        std::vector<Slot> input(32);
        for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned i = 0; i < 8; ++i) {
                put(input[lane], code(values[(lane + i) % 4]), 2 * i);
                put(input[lane], code(values[(lane / 4 + i) % 4]), 32 + 2 * i);
            }
        }
        const LaneResult result = run_lanes(lane_kernel("ld.global.b16 %h1, [%in]; atom.global.add.noftz." + type +
                                                        " %h2, [%in+32], %h1; st.global.b16 [%out], %h2;"
                                                        "ld.global.b32 %r1, [%in+4]; atom.add.noftz." +
                                                        type + "x2 %r2, [%in+36], %r1; st.global.b32 [%out+4], %r2;"),
                                            input);
        INFO(result.launch.message, result.report);
        REQUIRE(result.launch.code == 0);
        for (unsigned lane = 0; lane < 32; ++lane) {
            for (const unsigned i : {0u, 2u, 3u}) {
                const double sum = values[(lane + i) % 4] + values[(lane / 4 + i) % 4];
                CHECK(get<std::uint16_t>(result.input[lane], 32 + 2 * i) == code(sum));
                CHECK(get<std::uint16_t>(result.output[lane], 2 * i) == get<std::uint16_t>(input[lane], 32 + 2 * i));
            }
            CHECK(get<std::uint16_t>(result.input[lane], 34) == get<std::uint16_t>(input[lane], 34));
        }
    }
    // f16: 2^-24 + 2^-24 is subnormal; 2048 + 1 is a tie that rounds to the even 2048, 2048 + 3 to 2052.
    std::vector<Slot> input(32);
    const std::uint16_t cases[][3] = {{0x0001, 0x0001, 0x0002}, {0x6800, 0x3C00, 0x6800}, {0x6800, 0x4200, 0x6802},
                                      {0x7BFF, 0x7BFF, 0x7C00}, {0x7C00, 0xFC00, 0x7FFF}, {0x8000, 0x8000, 0x8000}};
    for (unsigned lane = 0; lane < 32; ++lane) {
        put(input[lane], cases[lane % 6][0]);
        put(input[lane], cases[lane % 6][1], 2);
    }
    const LaneResult result =
        run_lanes(lane_kernel("ld.global.b16 %h1, [%in]; red.global.add.noftz.f16 [%in+2], %h1;"), input);
    REQUIRE(result.launch.code == 0);
    for (unsigned lane = 0; lane < 32; ++lane) {
        CHECK(get<std::uint16_t>(result.input[lane], 2) == cases[lane % 6][2]);
    }
}

TEST_CASE("vector atomics work element by element: add, min and max")
{
    std::vector<Slot> input(32);
    for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < 4; ++i) {
            put(input[lane], static_cast<float>(lane) + static_cast<float>(i) / 4, 4 * i);
            put(input[lane], static_cast<float>(i) * 100, 32 + 4 * i);
        }
    }
    for (const std::string form : {"atom.global.add.v4.f32", "atom.global.v4.f32.add", "atom.relaxed.gpu.add.v4.f32"}) {
        const LaneResult result = run_lanes(
            lane_kernel("ld.global.v4.f32 {%f1,%f2,%f3,%f4}, [%in]; " + form +
                        " {%f5,%f6,%f7,%f8}, [%in+32], {%f1,%f2,%f3,%f4};"
                        "st.global.v4.f32 [%out], {%f5,%f6,%f7,%f8}; red.global.add.v2.f32 [%in+40], {%f1,%f2};"),
            input);
        INFO(result.launch.message, result.report);
        REQUIRE(result.launch.code == 0);
        for (unsigned lane = 0; lane < 32; ++lane) {
            for (unsigned i = 0; i < 4; ++i) {
                const float operand = get<float>(input[lane], 4 * i), old = get<float>(input[lane], 32 + 4 * i);
                CHECK(get<float>(result.output[lane], 4 * i) == old);
                const float again = i < 2 ? 0 : get<float>(input[lane], 4 * (i - 2));
                CHECK(get<float>(result.input[lane], 32 + 4 * i) == old + operand + again);
            }
        }
    }
    // f16: 1, -2, NaN, 0; against 0.5, -1, 3, -0.
    const std::array<std::uint16_t, 4> a{0x3C00, 0xC000, 0x7E00, 0x0000}, b{0x3800, 0xBC00, 0x4200, 0x8000};
    const std::array<std::uint16_t, 4> smallest{0x3800, 0xC000, 0x4200, 0x8000},
        largest{0x3C00, 0xBC00, 0x4200, 0x0000};
    for (unsigned lane = 0; lane < 32; ++lane) {
        put(input[lane], a);
        put(input[lane], b, 32);
        put(input[lane], b, 40);
        put(input[lane], b, 48);
    }
    const LaneResult result = run_lanes(
        lane_kernel(
            "ld.global.v4.b16 {%h1,%h2,%h3,%h4}, [%in]; atom.global.min.noftz.v4.f16 {%h5,%h6,%h7,%h8}, [%in+32], "
            "{%h1,%h2,%h3,%h4};"
            "st.global.v4.b16 [%out], {%h5,%h6,%h7,%h8}; red.global.max.noftz.v4.f16 [%in+40], {%h1,%h2,%h3,%h4};"
            "ld.global.v2.b32 {%r1,%r2}, [%in]; red.global.max.noftz.v2.f16x2 [%in+48], {%r1,%r2};"),
        input);
    INFO(result.launch.message, result.report);
    REQUIRE(result.launch.code == 0);
    for (unsigned lane = 0; lane < 32; ++lane) {
        CHECK(get<std::array<std::uint16_t, 4>>(result.output[lane]) == b);
        CHECK(get<std::array<std::uint16_t, 4>>(result.input[lane], 32) == smallest);
        CHECK(get<std::array<std::uint16_t, 4>>(result.input[lane], 40) == largest);
        CHECK(get<std::array<std::uint16_t, 4>>(result.input[lane], 48) == largest);
    }
}

TEST_CASE("atomics of many clusters on several CPU threads lose nothing")
{
    PtxRun run(module_text("sm_100a", R"(
.visible .entry k(.param .u64 out)
{
    .reg .b64 %d<4>; .reg .b32 %r<8>; .reg .f32 %f<2>; .reg .b128 %q<4>; .reg .pred %p;
    ld.param.u64 %d1, [out];
    atom.global.add.u32 %r1, [%d1], 1; red.global.add.u64 [%d1+8], 3; red.global.max.u32 [%d1+4], %r1;
    red.global.add.f32 [%d1+16], 0f3F800000;
    mov.u32 %r2, 0;
LOOP:
    ld.relaxed.gpu.global.b32 %r3, [%d1+20]; add.u32 %r4, %r3, 1; atom.global.cas.b32 %r5, [%d1+20], %r3, %r4;
    setp.ne.u32 %p, %r5, %r3; @%p bra LOOP;
    ret;
})"));
    run.options.threads = 2;
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        run.options.schedule = schedule;
        const std::uint64_t out = run.buffer(std::vector<std::uint32_t>(6));
        const LaunchResult result = run.launch("k", {.grid = {20, 1, 1}, .block = {96, 1, 1}}, out);
        INFO(result.message, run.report.text());
        REQUIRE(result.code == 0);
        const auto words = run.read<std::uint32_t>(out, 6);
        CHECK(words[0] == 1920);
        CHECK(words[1] == 1919);
        CHECK(words[2] == 3 * 1920);
        CHECK(std::bit_cast<float>(words[4]) == 1920.0F);
        CHECK(words[5] == 1920);
    }
    CHECK(run.report.findings().empty());
}

TEST_CASE("atomic forms that PTX does not have are refused")
{
    for (const std::string body :
         {"atom.global.add.s64 %d1, [%in], %d2;", "atom.global.add.b32 %r1, [%in], %r2;",
          "atom.global.min.f32 %f1, [%in], %f2;", "atom.global.add.f16 %h1, [%in], %h2;",
          "atom.global.add.noftz.f32 %f1, [%in], %f2;", "atom.global.inc.u64 %d1, [%in], %d2;",
          "atom.global.and.u32 %r1, [%in], %r2;", "atom.global.exch.u32 %r1, [%in], %r2;",
          "atom.global.cas.u32 %r1, [%in], %r2, %r3;", "atom.global.cas.b32 %r1, [%in], %r2;",
          "atom.local.add.u32 %r1, [%in], %r2;", "atom.shared.add.v2.f32 {%f1,%f2}, [%r0], {%f3,%f4};",
          "atom.global.min.noftz.f16 %h1, [%in], %h2;", "red.acquire.gpu.global.add.s32 [%in], %r1;",
          "red.global.exch.b32 [%in], %r1;", "atom.global.add.u32 %d1, [%in], %r2;",
          "atom.global.add.u32 %r1, [%in], %d2;", "atom.global.u32 %r1, [%in], %r2;",
          "atom.global.add.v4.f32 {%f1,%f2}, [%in], {%f3,%f4,%f5,%f6};"}) {
        CAPTURE(body);
        CHECK_FALSE(load_error(body).empty());
    }
    CHECK(load_error("atom.global.add.v2.f32 {%f1,%f2}, [%in], {%f3,%f4};", "", "t4", "sm_75").find("9.0") !=
          std::string::npos);
}

}  // namespace tessera::emulator::test
