// Planted faults of memory accesses: each check reports its fault, at the right line, with the error that hardware
// would give.

#include <optional>

#include "../memory/lane_kernel.hpp"

namespace tessera::emulator::test {

namespace {

constexpr Schedule schedules[] = {Schedule::in_order, Schedule::random, Schedule::adversarial};

void expect_fault(std::string_view body, int code, FindingKind kind, std::string_view part_of_message,
                  std::string_view module_scope = "", LaneMask lanes = 0)
{
    CAPTURE(body);
    for (const bool checks : {true, false}) {  // always found, also without checks
        const LaneResult result = run_lanes(lane_kernel(body, module_scope), lane_input(), "b200", checks);
        INFO(result.launch.message, result.report);
        CHECK(result.launch.code == code);
        REQUIRE(result.findings.size() == 1);
        const Finding& finding = result.findings[0];
        CHECK(finding.kind == kind);
        CHECK(finding.error);
        CHECK(finding.message.find(part_of_message) != std::string::npos);
        CHECK(finding.kernel == "k");
        CHECK(finding.ptx_text.size() > 5);
        CHECK((lanes == 0 || finding.lanes == lanes));
    }
}

}  // namespace

TEST_CASE("accesses out of bounds in global memory are reported")
{
    expect_fault("ld.global.b32 %r1, [%all+2048];", 700, FindingKind::out_of_bounds, "2048 bytes");
    expect_fault("ld.global.b32 %r1, [%all+-4];", 700, FindingKind::out_of_bounds, "");
    expect_fault("st.global.b32 [%in+64], %r1;", 700, FindingKind::out_of_bounds, "lane 31", "", 1u << 31);
    expect_fault("mov.b64 %d1, 0; ld.global.b32 %r1, [%d1];", 700, FindingKind::out_of_bounds, "0x0", "", 1);
    expect_fault("mov.b64 %d1, 0; ld.b32 %r1, [%d1];", 700, FindingKind::out_of_bounds, "0x0");
    expect_fault("mov.b64 %d1, -1; st.b8 [%d1], 0;", 700, FindingKind::out_of_bounds, "");
    expect_fault("add.s64 %d1, %all, 2040; ld.global.v2.b64 {%d2,%d3}, [%all+2048];", 700, FindingKind::out_of_bounds,
                 "");
    expect_fault("atom.global.add.u32 %r1, [%all+2048], 1;", 700, FindingKind::out_of_bounds, "atom.global.add.u32");
    expect_fault("red.global.add.f32 [%all+2048], %f1;", 700, FindingKind::out_of_bounds, "red");
    expect_fault("setp.eq.u32 %p1, %lane, 9; @%p1 ld.global.b32 %r1, [%all+2048];", 700, FindingKind::out_of_bounds,
                 "lane 9", "", 1u << 9);
    expect_fault("ld.global.b32 %r1, [variable+8];", 700, FindingKind::out_of_bounds, "", ".global .u32 variable[2];");
}

TEST_CASE("misaligned addresses are reported")
{
    expect_fault("ld.global.b32 %r1, [%in+2];", 716, FindingKind::misaligned, "multiple of 4");
    expect_fault("st.global.v4.b32 [%in+8], {%r1,%r2,%r3,%r4};", 716, FindingKind::misaligned, "multiple of 16");
    expect_fault("ld.global.v8.b32 {%r1,%r2,%r3,%r4,%r5,%r6,%r7,%r8}, [%in+16];", 716, FindingKind::misaligned,
                 "multiple of 32");
    expect_fault("ld.global.b128 %q1, [%in+8];", 716, FindingKind::misaligned, "multiple of 16");
    expect_fault(".shared .align 16 .b8 s[64]; st.shared.b64 [s+4], %d1;", 716, FindingKind::misaligned,
                 "multiple of 8");
    expect_fault(".local .align 16 .b8 l[64]; st.local.b64 [l+4], %d1;", 716, FindingKind::misaligned, "multiple of 8");
    expect_fault("atom.global.add.u64 %d1, [%in+4], %d2;", 716, FindingKind::misaligned, "multiple of 8");
    expect_fault("setp.eq.u32 %p1, %lane, 3; @%p1 add.s64 %in, %in, 1; ld.global.b16 %h1, [%in];", 716,
                 FindingKind::misaligned, "lane 3", "", 8);
}

TEST_CASE("accesses out of bounds in shared and local memory and parameters are reported")
{
    expect_fault(".shared .align 16 .b8 s[64]; ld.shared.b32 %r1, [s+64];", 700, FindingKind::out_of_bounds,
                 "64 bytes of shared memory");
    expect_fault(".shared .align 16 .b8 s[64]; mov.b32 %r1, s; mad.lo.u32 %r1, %lane, 4, %r1; st.shared.b32 [%r1], 0;",
                 700, FindingKind::out_of_bounds, "lane 16", "", 1u << 16);
    expect_fault(".shared .align 16 .b8 s[64]; mov.b32 %r1, 0; st.shared.b32 [%r1], 0;", 700,
                 FindingKind::out_of_bounds, "0x0");  // addresses below 0x400 are reserved
    expect_fault(".shared .align 16 .b8 s[64]; cvta.shared.u64 %d1, s; st.b32 [%d1+64], 0;", 700,
                 FindingKind::out_of_bounds, "shared memory");
    expect_fault(".local .align 16 .b8 l[64]; mov.b64 %d1, l; ld.local.b32 %r1, [%d1+64];", 700,
                 FindingKind::out_of_bounds, "local memory");
    expect_fault("mov.b64 %d1, in; cvta.param.u64 %d1, %d1; ld.b32 %r1, [%d1+16];", 700, FindingKind::out_of_bounds,
                 "parameters");
    expect_fault("mov.b64 %d1, in; cvta.param.u64 %d1, %d1; st.b32 [%d1], %r1;", 700, FindingKind::out_of_bounds,
                 "parameters cannot be written");
}

TEST_CASE("constant memory cannot be written through a generic address")
{
    expect_fault("cvta.const.u64 %d1, table; st.b32 [%d1], 5;", 700, FindingKind::out_of_bounds, "constant",
                 ".const .u32 table[4] = {1,2,3,4};");
    expect_fault("cvta.const.u64 %d1, table; red.add.u32 [%d1], 5;", 700, FindingKind::out_of_bounds, "constant",
                 ".const .u32 table[4] = {1,2,3,4};");
}

namespace {

void expect_finding(std::string_view body, FindingKind kind, std::uint64_t count)
{
    CAPTURE(body);
    for (const Schedule schedule : schedules) {
        const LaneResult result = run_lanes(lane_kernel(body), lane_input(), "b200", true, schedule);
        INFO(result.launch.message, result.report);
        CHECK(result.launch.code == 0);  // hardware would continue
        for (const Finding& finding : result.findings) {
            CHECK(finding.kind == kind);
            CHECK_FALSE(finding.error);
        }
        CHECK(result.findings.size() == count);
    }
    CHECK(run_lanes(lane_kernel(body), lane_input(), "b200", false).findings.empty());  // not without checks
}

}  // namespace

TEST_CASE("an uninitialized read of shared memory is reported once per instruction")
{
    const std::string s = ".shared .align 16 .b8 s[256];";
    const std::string use = "st.global.b32 [%out], %r1;";
    expect_finding(s + "ld.shared.b32 %r1, [s];" + use, FindingKind::uninitialized_shared, 1);
    expect_finding(s + "st.shared.b32 [s], 0; ld.shared.b32 %r1, [s];" + use, FindingKind::uninitialized_shared, 0);
    expect_finding(s + "st.shared.b16 [s], 0; ld.shared.b32 %r1, [s];" + use, FindingKind::uninitialized_shared, 1);
    expect_finding(
        s + "st.shared.b32 [s], 0; ld.shared.v2.b32 {%r2,%r1}, [s];" + use + "\n ld.shared.b32 %r1, [s+4];" + use,
        FindingKind::uninitialized_shared, 2);
    expect_finding(s + "st.shared.b32 [s], 0; ld.shared.v2.b32 {%r1,%r2}, [s];" + use,
                   FindingKind::uninitialized_shared, 0);  // the second element is unused
    expect_finding(s + "atom.shared.add.u32 %r1, [s+4], 1;", FindingKind::uninitialized_shared, 1);
    expect_finding(s + "cvta.shared.u64 %d1, s; setp.eq.u32 %p1, %lane, 4; @%p1 ld.b32 %r1, [%d1];" + use,
                   FindingKind::uninitialized_shared, 1);
    expect_finding(s + "ld.shared.b32 %r1, [s];", FindingKind::uninitialized_shared, 0);
}

TEST_CASE("a read of local memory is reported if none of its bytes was written")
{
    const std::string use = "st.global.b32 [%out], %r1;";
    expect_finding(".local .align 16 .b8 l[64]; ld.local.b32 %r1, [l];" + use, FindingKind::uninitialized_local, 1);
    expect_finding(".local .align 16 .b8 l[64]; st.local.b8 [l+1], %lane; ld.local.b32 %r1, [l];" + use,
                   FindingKind::uninitialized_local, 0);
    expect_finding(".local .align 16 .b8 l[64]; st.local.b32 [l], %lane; ld.local.b32 %r1, [l+4];" + use,
                   FindingKind::uninitialized_local, 1);
    expect_finding(
        ".local .align 16 .b8 l[64]; mov.b64 %d1, l; cvta.local.u64 %d1, %d1; setp.eq.u32 %p1, %lane, 3; @!%p1 st.b32 "
        "[%d1], 1; ld.b32 %r1, [%d1];" +
            use,
        FindingKind::uninitialized_local, 1);
    // In a second call of a function its variables are undefined again; the caller keeps its own.
    const std::string body =
        ".local .b32 mine; st.local.b32 [mine], 5; call.uni f, (); call.uni f, (); ld.local.b32 %r1, [mine]; "
        "st.global.b32 [%out], %r1;";
    const auto function = [](const std::string& text) {
        return ".global .b32 sink; .func f() { .reg .b32 %r<3>; .local .b32 l; " + text +
               " st.global.b32 [sink], %r1; ret; }";
    };
    CHECK(run_lanes(lane_kernel(body, function("st.local.b32 [l], 1;\n ld.local.b32 %r1, [l];"))).findings.empty());
    const LaneResult stale = run_lanes(lane_kernel(body, function("ld.local.b32 %r1, [l];\n st.local.b32 [l], 1;")));
    INFO(stale.launch.message, stale.report);
    REQUIRE(stale.findings.size() == 1);
    CHECK(stale.findings[0].count == 2);
    CHECK(stale.findings[0].lanes == all_lanes);
    CHECK(get<std::uint32_t>(stale.output[9]) == 5);
}

TEST_CASE("an uninitialized read of global memory is reported")
{
    // The number of findings, which is the same in every schedule.
    const auto run_on_fresh = [](const std::string& body, bool checks = true) {
        std::optional<std::size_t> count;
        for (const Schedule schedule : schedules) {
            PtxRun run(lane_kernel(body, ".global .b64 sink;"));
            run.options.check = checks;
            run.options.schedule = schedule;
            const std::uint64_t in = run.uninitialized(2048);
            const LaunchResult result = run.launch("k", {}, in, in);
            INFO(body, result.message, run.report.text());
            CHECK(result.code == 0);
            for (const Finding& finding : run.report.findings()) {
                CHECK(finding.kind == FindingKind::uninitialized_global);
            }
            CHECK(run.report.findings().size() == count.value_or(run.report.findings().size()));
            count = run.report.findings().size();
        }
        return count;
    };
    const std::string use = "st.global.b32 [sink], %r1;";
    CHECK(run_on_fresh("ld.global.b32 %r1, [%in];" + use) == 1);
    CHECK(run_on_fresh("ld.global.b32 %r1, [%in];") == 0);
    CHECK(run_on_fresh("ld.global.b32 %r1, [%in];" + use, false) == 0);
    CHECK(run_on_fresh("ld.global.b32 %r1, [%all+4];" + use) == 1);
    CHECK(run_on_fresh("st.global.b32 [%in], 0; ld.global.b32 %r1, [%in];" + use) == 0);
    CHECK(run_on_fresh("st.global.b16 [%in], 0; ld.global.b32 %r1, [%in];" + use) == 1);
    CHECK(run_on_fresh("st.global.b32 [%in], 0; ld.global.v2.b32 {%r2,%r1}, [%in];" + use) == 1);
    CHECK(run_on_fresh("st.global.b32 [%in], 0; ld.global.v2.b32 {%r1,%r2}, [%in];" + use) == 0);
    CHECK(run_on_fresh("st.v4.b32 [%in+16], {%r1,%r1,%r1,%r1}; ld.global.b64 %d1, [%in+24]; ld.global.b8 %h1, [%in+31];"
                       "st.global.b64 [sink], %d1; st.global.b8 [sink], %h1;") == 0);
    CHECK(run_on_fresh("mul.wide.u32 %d1, %lane, 4; add.s64 %d1, %all, %d1; st.global.b32 [%d1], 0; ld.global.b32 %r1, "
                       "[%d1+64];" +
                       use) == 1);
    CHECK(run_on_fresh("setp.eq.u32 %p1, %lane, 0; @!%p1 st.global.b32 [%in], 0; ld.global.b32 %r1, [%in];" + use) ==
          1);
    // Operations that compute with the old value use it.
    CHECK(run_on_fresh("atom.global.add.u32 %r1, [%in], 1;") == 1);
    CHECK(run_on_fresh("atom.global.cas.b32 %r1, [%in], 0, 1;") == 1);
    CHECK(run_on_fresh("red.global.add.u32 [%all+8], 1;") == 1);
    // An exchange only passes it on.
    CHECK(run_on_fresh("atom.global.exch.b32 %r1, [%in], 1; ld.global.b32 %r2, [%in]; st.global.b32 [sink], %r2;") ==
          0);
    CHECK(run_on_fresh("atom.global.exch.b32 _, [%in], 1;") == 0);
    CHECK(run_on_fresh("atom.global.exch.b32 %r1, [%in], 1;" + use) == 1);
}

TEST_CASE("strict mode ends the launch at a finding")
{
    PtxRun run(lane_kernel(".shared .b32 s; ld.shared.b32 %r1, [s]; st.global.b32 [%out], %r1;"));
    run.options.strict = true;
    const std::uint64_t in = run.buffer(lane_input());
    CHECK(run.launch("k", {}, in, in).code == 719);
}

}  // namespace tessera::emulator::test
