// cp.reduce.async.bulk: every operation and type, element by element against its definition.

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

/// 128 threads copy 1024 bytes of `in` to shared memory; one thread reduces them into `out`.
std::string to_global(const std::string& operation)
{
    return module_text("sm_90", R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
    .reg .pred p; .reg .b32 r<8>; .reg .b64 d<8>;
    .shared .align 128 .b8 data[1024];
    ld.param.u64 d0, [in];
    ld.param.u64 d1, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mul.wide.u32 d2, r0, 8;
    add.u64 d2, d0, d2;
    ld.global.u64 d3, [d2];
    mad.lo.u32 r2, r0, 8, r1;
    st.shared.u64 [r2], d3;
    fence.proxy.async.shared::cta;
    bar.sync 0;
    setp.ne.u32 p, r0, 0;
    @p ret;
    cp.reduce.async.bulk.global.shared::cta.bulk_group.)" +
                                    operation + R"( [d1], [r1], 1024;
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}
)");
}

template <typename Word>
void check_global(const std::string& operation, const std::vector<Word>& values, const std::vector<Word>& olds,
                  auto&& expected)
{
    CAPTURE(operation);
    constexpr std::size_t count = 1024 / sizeof(Word);
    std::vector<Word> input(count);
    std::vector<Word> output(count);
    for (std::size_t i = 0; i < count; ++i) {
        input[i] = values[i % values.size()];
        output[i] = olds[i / values.size() % olds.size()];
    }
    under_every_schedule(
        to_global(operation), "h200",
        [&](PtxRun& run) {
            const std::uint64_t in = run.buffer(input);
            const std::uint64_t out = run.buffer(output);
            const LaunchResult result = run.launch("k", {.block = {128, 1, 1}}, in, out);
            REQUIRE_CLEAN(run, result);
            const auto found = run.read<Word>(out, count);
            for (std::size_t i = 0; i < count; ++i) {
                CAPTURE(output[i]);
                CAPTURE(input[i]);
                REQUIRE(found[i] == static_cast<Word>(expected(output[i], input[i])));
            }
        },
        1);
}

using u16 = std::uint16_t;
using u32 = std::uint32_t;
using u64 = std::uint64_t;
using s32 = std::int32_t;
using s64 = std::int64_t;

const std::vector<u32> words{0, 1, 5, 6, 7, 0x7FFF'FFFF, 0x8000'0000, 0xFFFF'FFFF, 0xFFFF'FFF9, 0x1234'5678};
const std::vector<u64> longs{
    0, 1, 5, 0x7FFF'FFFF'FFFF'FFFF, 0x8000'0000'0000'0000, 0xFFFF'FFFF'FFFF'FFFF, 0x0123'4567'89AB'CDEF};

u32 bits(float value) { return std::bit_cast<u32>(value); }
float value_of(u32 word) { return std::bit_cast<float>(word); }

/// f16 and bf16 as doubles, written out.
double half_value(u16 code)
{
    const double sign = (code & 0x8000U) != 0 ? -1 : 1;
    const int exponent = code >> 10 & 0x1F;
    const int mantissa = code & 0x3FF;
    return exponent == 0 ? sign * std::ldexp(mantissa, -24) : sign * std::ldexp(1024 + mantissa, exponent - 25);
}
double brain_value(u16 code) { return value_of(u32{code} << 16); }

/// The code nearest to `value`, ties to even, by search over all finite codes.
u16 nearest(double value, double (*decode)(u16), u16 infinity)
{
    u16 best = 0;
    for (u32 code = 0; code < 0x10000; ++code) {
        if ((code & 0x7FFFU) >= infinity) {
            continue;
        }
        const double distance = std::fabs(decode(static_cast<u16>(code)) - value);
        const double so_far = std::fabs(decode(best) - value);
        if (distance < so_far ||
            (distance == so_far && (code & 1U) == 0 && std::signbit(value) == ((code & 0x8000U) != 0))) {
            best = static_cast<u16>(code);
        }
    }
    return best;
}

}  // namespace

TEST_CASE("integer reductions to global memory")
{
    check_global<u32>("add.u32", words, words, [](u32 a, u32 b) { return a + b; });
    check_global<u32>("add.s32", words, words, [](u32 a, u32 b) { return a + b; });
    check_global<u64>("add.u64", longs, longs, [](u64 a, u64 b) { return a + b; });
    check_global<u32>("min.u32", words, words, [](u32 a, u32 b) { return a < b ? a : b; });
    check_global<u32>("max.u32", words, words, [](u32 a, u32 b) { return a > b ? a : b; });
    check_global<u32>("min.s32", words, words,
                      [](u32 a, u32 b) { return static_cast<s32>(a) < static_cast<s32>(b) ? a : b; });
    check_global<u32>("max.s32", words, words,
                      [](u32 a, u32 b) { return static_cast<s32>(a) > static_cast<s32>(b) ? a : b; });
    check_global<u64>("min.u64", longs, longs, [](u64 a, u64 b) { return a < b ? a : b; });
    check_global<u64>("max.u64", longs, longs, [](u64 a, u64 b) { return a > b ? a : b; });
    check_global<u64>("min.s64", longs, longs,
                      [](u64 a, u64 b) { return static_cast<s64>(a) < static_cast<s64>(b) ? a : b; });
    check_global<u64>("max.s64", longs, longs,
                      [](u64 a, u64 b) { return static_cast<s64>(a) > static_cast<s64>(b) ? a : b; });
    check_global<u32>("inc.u32", words, words, [](u32 a, u32 b) { return a >= b ? 0 : a + 1; });
    check_global<u32>("dec.u32", words, words, [](u32 a, u32 b) { return a == 0 || a > b ? b : a - 1; });
    check_global<u32>("and.b32", words, words, [](u32 a, u32 b) { return a & b; });
    check_global<u32>("or.b32", words, words, [](u32 a, u32 b) { return a | b; });
    check_global<u32>("xor.b32", words, words, [](u32 a, u32 b) { return a ^ b; });
    check_global<u64>("and.b64", longs, longs, [](u64 a, u64 b) { return a & b; });
    check_global<u64>("or.b64", longs, longs, [](u64 a, u64 b) { return a | b; });
    check_global<u64>("xor.b64", longs, longs, [](u64 a, u64 b) { return a ^ b; });
}

TEST_CASE("floating-point reductions to global memory")
{
    const std::vector<u32> floats{bits(0),      bits(1.5F),      bits(-2.25F),         bits(1e30F),
                                  bits(3e-39F), bits(0x1p-126F), bits(1.0F + 0x1p-23F)};
    check_global<u32>("add.f32", floats, floats, [&](u32 a, u32 b) { return bits(value_of(a) + value_of(b)); });
    const auto bits64 = [](double value) { return std::bit_cast<u64>(value); };
    const std::vector<u64> doubles{bits64(0), bits64(1.1), bits64(-7.3e100), bits64(4e-320)};
    check_global<u64>("add.f64", doubles, doubles,
                      [&](u64 a, u64 b) { return bits64(std::bit_cast<double>(a) + std::bit_cast<double>(b)); });

    const std::vector<u16> halves{0x0000, 0x3C00, 0xBC01, 0x0001, 0x03FF, 0x5640, 0x7BFF - 0x400, 0x1234};
    check_global<u16>("add.noftz.f16", halves, halves,
                      [](u16 a, u16 b) { return nearest(half_value(a) + half_value(b), half_value, 0x7C00); });
    check_global<u16>("min.f16", halves, halves, [](u16 a, u16 b) { return half_value(a) < half_value(b) ? a : b; });
    check_global<u16>("max.f16", halves, halves, [](u16 a, u16 b) { return half_value(a) > half_value(b) ? a : b; });
    const std::vector<u16> brains{0x0000, 0x3F80, 0xBF81, 0x0001, 0x007F, 0x4640, 0x7000, 0x1234};
    check_global<u16>("add.noftz.bf16", brains, brains,
                      [](u16 a, u16 b) { return nearest(brain_value(a) + brain_value(b), brain_value, 0x7F80); });
    check_global<u16>("min.bf16", brains, brains, [](u16 a, u16 b) { return brain_value(a) < brain_value(b) ? a : b; });
    check_global<u16>("max.bf16", brains, brains, [](u16 a, u16 b) { return brain_value(a) > brain_value(b) ? a : b; });
}

TEST_CASE("many CTAs can reduce into the same memory")
{
    under_every_schedule(
        to_global("add.u32"), "h200",
        [](PtxRun& run) {
            run.options.threads = 4;
            const std::uint64_t in = run.buffer(std::vector<u32>(256, 3));
            const std::uint64_t out = run.buffer(std::vector<u32>(256, 1));
            const LaunchResult result = run.launch("k", {.grid = {40, 1, 1}, .block = {128, 1, 1}}, in, out);
            REQUIRE_CLEAN(run, result);
            for (const u32 value : run.read<u32>(out, 256)) {
                REQUIRE(value == 121);
            }
        },
        2);
}

TEST_CASE("reductions into the shared memory of a peer complete on its barrier")
{
    struct Case {
        const char* operation;
        u32 (*expected)(u32 old, u32 value);
    };
    constexpr std::array cases{
        Case{"add.u32", [](u32 a, u32 b) { return a + b; }},
        Case{"add.s32", [](u32 a, u32 b) { return a + b; }},
        Case{"min.u32", [](u32 a, u32 b) { return a < b ? a : b; }},
        Case{"max.s32", [](u32 a, u32 b) { return a > b ? a : b; }},
        Case{"inc.u32", [](u32 a, u32 b) { return a >= b ? 0 : a + 1; }},
        Case{"dec.u32", [](u32 a, u32 b) { return a == 0 || a > b ? b : a - 1; }},
        Case{"and.b32", [](u32 a, u32 b) { return a & b; }},
        Case{"or.b32", [](u32 a, u32 b) { return a | b; }},
        Case{"xor.b32", [](u32 a, u32 b) { return a ^ b; }},
    };
    for (const Case& one : cases) {
        CAPTURE(one.operation);
        // CTA 1's thread t holds t + 40, to be reduced into CTA 0's 3 t.
        const std::string ptx = module_text("sm_90", R"(
.visible .entry k(.param .u64 out)
{
    .reg .pred p, q; .reg .b32 r<16>; .reg .b64 d<4>;
    .shared .align 128 .b8 data[512];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mov.u32 r2, bar;
    mov.u32 r3, %cluster_ctarank;
    mad.lo.u32 r4, r0, 4, r1;
    setp.eq.u32 q, r3, 1;
    add.u32 r5, r0, 40;
    mul.lo.u32 r6, r0, 3;
    selp.u32 r5, r5, r6, q;
    st.shared.u32 [r4], r5;
    fence.proxy.async.shared::cta;
    setp.ne.u32 p, r0, 0;
    @p bra ready;
    mbarrier.init.shared::cta.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
    fence.mbarrier_init.release.cluster;
ready:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    @!q bra wait;
    @p bra done;
    mapa.shared::cluster.u32 r7, r1, 0;
    mapa.shared::cluster.u32 r8, r2, 0;
    cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.)" +
                                                         std::string(one.operation) + R"( [r7], [r1], 512, [r8];
    bra done;
wait:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [bar], 0;
    @!p bra wait;
    ld.shared.u32 r9, [r4];
    mul.wide.u32 d1, r0, 4;
    add.u64 d1, d0, d1;
    st.global.u32 [d1], r9;
done:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;
}
)");
        under_every_schedule(
            ptx, "h200",
            [&](PtxRun& run) {
                const std::uint64_t out = run.buffer(std::vector<u32>(128));
                const LaunchResult result =
                    run.launch("k", {.grid = {2, 1, 1}, .block = {128, 1, 1}, .cluster = {2, 1, 1}}, out);
                REQUIRE_CLEAN(run, result);
                const auto values = run.read<u32>(out, 128);
                for (u32 i = 0; i < 128; ++i) {
                    REQUIRE(values[i] == one.expected(3 * i, i + 40));
                }
            },
            2);
    }
}

TEST_CASE("reductions that do not exist are refused when loading")
{
    for (const char* wrong : {"add.f16", "add.s64", "min.f32", "inc.s32", "and.u32", "max.noftz.f16", "add.b32"}) {
        CAPTURE(wrong);
        const PtxRun run(to_global(wrong), "h200");
        CHECK_FALSE(run.module().find_kernel("k")->load_error.empty());
    }
}
