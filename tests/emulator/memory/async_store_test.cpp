#include "lane_kernel.hpp"

namespace tessera::emulator::test {

namespace {

/// Two CTAs of one warp. CTA 1 sends with `send` to CTA 0. %r20 is the address of s and %r21 that of the barrier (in
/// CTA 0); %lane is the lane; %r1 to %r4 are 100 + lane, 200 + lane, ... CTA 0 expects `bytes` bytes and copies s to
/// the output.
struct Send : PtxRun {
    Send(const std::string& send, unsigned bytes, Schedule schedule, const std::string& wait = "")
        : PtxRun(module_text("sm_100a", R"(
.visible .entry k(.param .u64 out)
{
    .reg .b16 %h<9>; .reg .b32 %r<30>; .reg .b64 %d<30>; .reg .f32 %f<9>; .reg .pred %p<9>; .reg .b32 %rank, %lane;
    .reg .b64 %out;
    .shared .align 16 .b8 s[1024]; .shared .align 8 .b64 bar;
    ld.param.u64 %out, [out]; mov.u32 %rank, %cluster_ctarank; mov.u32 %lane, %tid.x;
    setp.eq.u32 %p1, %rank, 0; setp.eq.u32 %p2, %lane, 0;
    mul.lo.u32 %r9, %lane, 4; mov.b32 %r8, s; add.u32 %r9, %r9, %r8;
    mov.u32 %r10, 0;
FILL: st.shared.b32 [%r9], 7; add.u32 %r9, %r9, 128; add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 8; @%p3 bra FILL;
    @%p2 mbarrier.init.shared::cta.b64 [bar], 1;
    @%p2 fence.mbarrier_init.release.cluster;
    barrier.cluster.arrive; barrier.cluster.wait;
    @%p1 bra RECEIVE;
    mapa.shared::cluster.u32 %r20, s, 0; mapa.shared::cluster.u32 %r21, bar, 0;
    add.u32 %r1, %lane, 100; add.u32 %r2, %lane, 200; add.u32 %r3, %lane, 300; add.u32 %r4, %lane, 400;
)" + send + R"(
    bra END;
RECEIVE:
    @%p2 mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], )" +
                                            std::to_string(bytes) + ";\n" +
                                            (wait.empty() ? R"(
WAIT: mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar], 0; @!%p3 bra WAIT;)"
                                                          : wait) +
                                            R"(
    mul.lo.u32 %r9, %lane, 4; mov.b32 %r8, s; add.u32 %r9, %r9, %r8; mul.wide.u32 %d1, %lane, 4; add.s64 %d1, %out, %d1;
    mov.u32 %r10, 0;
COPY: ld.shared.b32 %r11, [%r9]; st.global.b32 [%d1], %r11; add.u32 %r9, %r9, 128; add.s64 %d1, %d1, 128;
add.u32 %r10, %r10, 1; setp.lt.u32 %p3, %r10, 8; @%p3 bra COPY;
END:
    barrier.cluster.arrive; barrier.cluster.wait;
    ret;
})"))
    {
        options.schedule = schedule;
        out = buffer(std::vector<std::uint32_t>(256));
        error = module().find_kernel("k")->load_error;
        result = launch("k", {.grid = {2, 1, 1}, .block = {32, 1, 1}, .cluster = {2, 1, 1}}, out);
        words = read<std::uint32_t>(out, 256);
    }
    std::uint64_t out = 0;
    std::string error;
    LaunchResult result;
    std::vector<std::uint32_t> words;
};

constexpr Schedule schedules[] = {Schedule::in_order, Schedule::random, Schedule::adversarial};

}  // namespace

TEST_CASE("st.async stores and completes bytes on the receiver's mbarrier")
{
    for (const Schedule schedule : schedules) {
        const Send words(
            "mad.lo.u32 %r20, %lane, 4, %r20; st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r20], "
            "%r1, [%r21];",
            128, schedule);
        INFO(words.error, words.result.message, words.report.text());
        REQUIRE(words.result.code == 0);
        CHECK(words.report.findings().empty());
        const Send pairs(
            "mad.lo.u32 %r20, %lane, 8, %r20; mov.b64 %d1, {%r1, %r2}; "
            "st.async.shared::cluster.mbarrier::complete_tx::bytes.b64 [%r20], %d1, [%r21];",
            256, schedule);
        REQUIRE(pairs.result.code == 0);
        const Send fours(
            "mad.lo.u32 %r20, %lane, 16, %r20; st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%r20], "
            "{%r1,%r2,%r3,%r4}, [%r21];",
            512, schedule);
        REQUIRE(fours.result.code == 0);
        CHECK(fours.report.findings().empty());
        const Send generic(
            "cvt.u64.u32 %d1, %r20; cvt.u64.u32 %d2, %r21; cvta.shared::cluster.u64 %d1, %d1; cvta.shared::cluster.u64 "
            "%d2, %d2; mul.wide.u32 %d3, %lane, 16; add.s64 %d1, %d1, %d3;"
            "mov.b64 %d3, {%r1, %r2}; mov.b64 %d4, {%r3, %r4}; st.async.mbarrier::complete_tx::bytes.v2.u64 [%d1], "
            "{%d3,%d4}, [%d2];",
            512, schedule);
        INFO(generic.error, generic.result.message, generic.report.text());
        REQUIRE(generic.result.code == 0);
        for (unsigned lane = 0; lane < 32; ++lane) {
            CHECK(words.words[lane] == 100 + lane);
            CHECK(words.words[32 + lane] == 7);
            CHECK(pairs.words[2 * lane] == 100 + lane);
            CHECK(pairs.words[2 * lane + 1] == 200 + lane);
            for (unsigned i = 0; i < 4; ++i) {
                CHECK(fours.words[4 * lane + i] == 100 * (i + 1) + lane);
                CHECK(generic.words[4 * lane + i] == 100 * (i + 1) + lane);
            }
        }
    }
}

TEST_CASE("red.async of each operation")
{
    struct Case {
        std::string operation;
        std::function<std::uint32_t()> expected;  // result of 32 lanes with 100 + lane on one word that holds 7
    };
    const auto fold = [](auto f) {
        return [f] {
            std::uint32_t value = 7;
            for (std::uint32_t lane = 0; lane < 32; ++lane) {
                value = f(value, 100 + lane);
            }
            return value;
        };
    };
    using u32 = std::uint32_t;
    const std::vector<Case> cases{{"add.u32", fold([](u32 a, u32 b) { return a + b; })},
                                  {"add.s32", fold([](u32 a, u32 b) { return a + b; })},
                                  {"min.u32", fold([](u32 a, u32 b) { return std::min(a, b); })},
                                  {"max.s32", fold([](u32 a, u32 b) { return std::max(a, b); })},
                                  {"and.b32", fold([](u32 a, u32 b) { return a & b; })},
                                  {"or.b32", fold([](u32 a, u32 b) { return a | b; })},
                                  {"xor.b32", fold([](u32 a, u32 b) { return a ^ b; })},
                                  {"inc.u32", [] { return 39u; }},
                                  {"dec.u32", nullptr}};
    for (const Schedule schedule : schedules) {
        for (const Case& c : cases) {
            const Send run("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes." + c.operation +
                               " [%r20], %r1, [%r21];",
                           128, schedule);
            INFO(c.operation, run.error, run.result.message, run.report.text());
            REQUIRE(run.result.code == 0);
            CHECK(run.report.findings().empty());
            if (c.expected) {
                CHECK(run.words[0] == c.expected());
            } else {
                CHECK(run.words[0] != 7);  // depends on the order
            }
            CHECK(run.words[1] == 7);
        }
        const Send wide(
            "mov.b64 %d1, {%r1, %r2}; red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u64 "
            "[%r20], %d1, [%r21];",
            256, schedule);
        REQUIRE(wide.result.code == 0);
        std::uint64_t sum = 7 + (std::uint64_t{7} << 32);
        for (std::uint64_t lane = 0; lane < 32; ++lane) {
            sum += 100 + lane + ((200 + lane) << 32);
        }
        CHECK((wide.words[0] | std::uint64_t{wide.words[1]} << 32) == sum);
    }
}

TEST_CASE("a read of st.async's data without a wait for its barrier is reported")
{
    std::uint64_t findings = 0;
    for (const Schedule schedule : schedules) {
        for (unsigned repeat = 0; repeat < 1; ++repeat) {
            const Send run(
                "mad.lo.u32 %r20, %lane, 4, %r20; st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r20], "
                "%r1, [%r21];",
                128, schedule,
                "mov.u32 %r12, 0; SPIN: add.u32 %r12, %r12, 1; setp.lt.u32 %p3, %r12, 2000; @%p3 bra SPIN;");
            REQUIRE(run.result.code == 0);
            findings += run.count(FindingKind::async_read_pending) + run.count(FindingKind::shared_race) +
                        run.count(FindingKind::stage_overwritten);
        }
    }
    CHECK(findings > 0);
}

TEST_CASE("data and mbarrier of st.async must be in one CTA, aligned and in bounds")
{
    const Send apart(
        "mapa.shared::cluster.u32 %r22, s, 1; st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r22], %r1, "
        "[%r21];",
        128, Schedule::in_order);
    CHECK(apart.count(FindingKind::invalid_operand) == 32);
    const Send crooked(
        "add.u32 %r20, %r20, 2; st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r20], %r1, [%r21];", 128,
        Schedule::in_order);
    CHECK(crooked.result.code == 716);
    const Send outside(
        "add.u32 %r20, %r20, 0x10000; st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r20], %r1, [%r21];",
        128, Schedule::in_order);
    CHECK(outside.result.code == 700);
    const Send no_barrier("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r20], %r1, [%r20];", 4,
                          Schedule::in_order);
    CHECK(no_barrier.count(FindingKind::barrier_misuse) > 0);
}

TEST_CASE("st.async and red.async on global memory")
{
    for (const Schedule schedule : schedules) {
        PtxRun run(
            lane_kernel("st.async.release.gpu.global.b32 [%in], %lane; st.async.mmio.release.sys.b64 [%in+8], 5; "
                        "red.async.release.gpu.global.add.u32 [%all+60], 2;"
                        "red.async.mmio.release.sys.global.add.u64 [%all+48], 3;"));
        run.options.schedule = schedule;
        std::vector<Slot> input = lane_input();
        put(input[0], std::array<std::uint32_t, 4>{}, 48);
        const std::uint64_t in = run.buffer(input);
        const LaunchResult result = run.launch("k", {}, in, in);
        INFO(result.message, run.report.text(), run.module().find_kernel("k")->load_error);
        REQUIRE(result.code == 0);
        CHECK(run.report.findings().empty());
        const auto slots = run.read<Slot>(in, 32);
        for (unsigned lane = 0; lane < 32; ++lane) {
            CHECK(get<std::uint32_t>(slots[lane]) == lane);
            CHECK(get<std::uint64_t>(slots[lane], 8) == 5);
        }
        CHECK(get<std::uint32_t>(slots[0], 60) == 64);
        CHECK(get<std::uint64_t>(slots[0], 48) == 96);
    }
}

TEST_CASE("st.bulk zeroes shared memory")
{
    check_lanes(
        ".shared .align 16 .b8 s[2048]; mov.b32 %r1, s; mad.lo.u32 %r1, %lane, 64, %r1; ld.global.v2.b64 {%d1,%d2}, "
        "[%in];"
        "st.shared.v2.b64 [%r1], {%d1,%d2}; st.shared.v2.b64 [%r1+16], {%d1,%d2}; add.u32 %r2, %r1, 8; "
        "st.bulk.weak.shared::cta [%r2], 16, 0;"
        "ld.shared.v2.b64 {%d3,%d4}, [%r1]; ld.shared.v2.b64 {%d5,%d6}, [%r1+16]; st.global.v2.b64 [%out], {%d3,%d4}; "
        "st.global.v2.b64 [%out+16], {%d5,%d6};"
        "cvt.u64.u32 %d7, %r1; cvta.shared.u64 %d7, %d7; mov.b64 %d8, 8; st.bulk [%d7+24], %d8, 0; ld.shared.b64 %d9, "
        "[%r1+24]; st.global.b64 [%out+32], %d9;",
        [](unsigned, const Slot& in, Slot& out) {
            std::memcpy(out.data(), in.data(), 8);
            std::memset(out.data() + 8, 0, 16);
            std::memcpy(out.data() + 24, in.data() + 8, 8);
            std::memset(out.data() + 32, 0, 8);
        });
    CHECK(run_lanes(lane_kernel(".shared .align 16 .b8 s[2048]; st.bulk.shared::cta [s], 12, 0;")).launch.code == 715);
    CHECK(run_lanes(lane_kernel(".shared .align 16 .b8 s[2048]; st.bulk.shared::cta [s], 4096, 0;")).launch.code ==
          700);
    CHECK(run_lanes(lane_kernel("st.bulk [%in], 16, 0;")).launch.code == 717);
    CHECK_FALSE(load_error("st.bulk [%in], 16, 1;").empty());
}

TEST_CASE("invalid forms are refused")
{
    for (const std::string body :
         {"st.async.b32 [%r1], %r2, [%r3];",
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.b8 [%r1], %h2, [%r3];",
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b64 [%r1], {%d1,%d2,%d3,%d4}, [%r3];",
          "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2;",
          "red.async.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3];",
          "red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.f32 [%r1], %f2, [%r3];",
          "red.async.release.gpu.global.min.u32 [%d1], %r2;", "st.async.release.global.b32 [%d1], %r2;"}) {
        CAPTURE(body);
        CHECK_FALSE(load_error(body).empty());
    }
    CHECK(load_error("st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3];", "", "t4", "sm_75")
              .find("9.0") != std::string::npos);
    CHECK(load_error("st.bulk [%in], 16, 0;", "", "h200", "sm_90a").find("10.0") != std::string::npos);
}

}  // namespace tessera::emulator::test
