// setmaxnreg: registers that move between warps, and what PTX leaves undefined.

#include "wgmma_kernel.hpp"

namespace tessera::emulator::test::warpgroup {
namespace {

/// Runs the program in every schedule. Requires one finding of this kind with these words; none if `words` is empty.
void check(const std::string& program, unsigned threads, FindingKind kind, const std::string& words)
{
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
            const Outcome outcome = execute(program, threads, schedule, seed);
            CAPTURE(program);
            INFO(outcome.text());
            CHECK(outcome.result.code == 0);
            CHECK(outcome.total() == (words.empty() ? 0 : 1));
            CHECK(outcome.count(kind) == (words.empty() ? 0 : 1));
            CHECK(outcome.text().find(words) != std::string::npos);
        }
    }
}

/// Warps below `bound` execute `low`, the others `high`; then all store.
std::string by_warp(unsigned bound, const std::string& low, const std::string& high)
{
    return "setp.lt.u32 %p, %me, " + std::to_string(32 * bound) + ";\n@%p bra LOW;\n" + high + "bra DONE;\nLOW:\n" +
           low + "DONE:\nst.global.f32 [%out], 0f3F800000;\n";
}

std::string set(const std::string& direction, unsigned count)
{
    return "setmaxnreg." + direction + ".sync.aligned.u32 " + std::to_string(count) + ";\n";
}

TEST_CASE("setmaxnreg moves registers between warpgroups")
{
    // 384 threads start with 168 registers each.
    const auto program = [](unsigned down, unsigned up) {
        return "setp.lt.u32 %p, %me, 128;\n@%p bra LESS;\nsetmaxnreg.inc.sync.aligned.u32 " + std::to_string(up) +
               ";\nbra DONE;\nLESS:\nsetmaxnreg.dec.sync.aligned.u32 " + std::to_string(down) +
               ";\nDONE:\nst.global.f32 [%out], 0f3F800000;\n";
    };
    for (const Schedule schedule : {Schedule::in_order, Schedule::random, Schedule::adversarial}) {
        const Outcome right = execute(program(24, 240), 384, schedule);
        CHECK(right.text() == "");
        CHECK(right.result.code == 0);
    }
    const Outcome too_many = execute(program(40, 240) + "bar.sync 0;\n", 384);
    CHECK(too_many.count(FindingKind::deadlock) > 0);
    const Outcome wrong_way = execute("setmaxnreg.dec.sync.aligned.u32 240;\n", 384);
    CHECK(wrong_way.count(FindingKind::invalid_operand) > 0);
}

TEST_CASE("setmaxnreg is for a whole warpgroup")
{
    constexpr FindingKind divergent = FindingKind::divergent_aligned;
    // The first warpgroup gives, the others take. A warp with an instruction of its own is as good.
    check(by_warp(4, set("dec", 40), set("inc", 200)), 384, divergent, "");
    check(by_warp(1, set("dec", 40), set("dec", 40)), 128, divergent, "");
    check(by_warp(3, set("dec", 40), ""), 128, divergent, "dec 40, which warp 3 of its warpgroup never executes");
    check(by_warp(1, set("dec", 40), ""), 128, divergent, "dec 40, which warp 1 of its warpgroup never executes");
    check(by_warp(5, "", set("dec", 40)), 256, divergent, "which warp 4 of its warpgroup never executes");
    check(by_warp(2, set("dec", 40), set("dec", 24)), 128, divergent,
          "warp 2 executes setmaxnreg.dec 24 where warp 0 of its warpgroup executes setmaxnreg.dec 40 (PTX line ");
    // The second of two.
    const std::string once = set("dec", 40) + "bar.sync 0;\n";
    check(once + by_warp(2, set("inc", 64), set("inc", 64)), 128, divergent, "");
    check(once + by_warp(2, set("inc", 64), set("inc", 72)), 128, divergent, "executes setmaxnreg.inc 64");
    check(once + by_warp(2, set("inc", 64), ""), 128, divergent, "which warp 2 of its warpgroup never executes");
}

TEST_CASE("a warp without work may give all its registers away")
{
    // Warp 3 ends at once; the others work.
    const std::string work = "mov.u32 %x, 600;\nWORK: sub.u32 %x, %x, 1;\nsetp.ne.u32 %q, %x, 0;\n@%q bra WORK;\n";
    check(by_warp(3, set("dec", 40) + work, set("dec", 24)), 128, FindingKind::divergent_aligned, "");
    check(by_warp(3, set("dec", 40) + work,
                  set("dec", 24) + "mov.u32 %x, 20;\nMORE: sub.u32 %x, %x, 1;\nsetp.ne.u32 "
                                   "%q, %x, 0;\n@%q bra MORE;\n"),
          128, FindingKind::divergent_aligned, "warp 3 executes setmaxnreg.dec 24");
}

TEST_CASE("warps must not ask for more registers than the CTA has, even if others end in time")
{
    // 384 threads start with 168 registers each: 24 + 2 * 240 are as many, 40 + 2 * 240 are more.
    check(by_warp(4, set("dec", 24), set("inc", 240)), 384, FindingKind::invalid_operand, "");
    check(by_warp(4, set("dec", 40), set("inc", 240)), 384, FindingKind::invalid_operand,
          "took 2080 registers per lane together, but it has 2016 (168 for each of 12 warps)");
    // Taken, given back, and taken by others.
    const std::string in_turn = set("dec", 96) + "bar.sync 0;\n" + by_warp(4, set("inc", 240) + set("dec", 96), "");
    check(in_turn.substr(0, in_turn.find("st.global")) + "bar.sync 0;\n", 384, FindingKind::divergent_aligned, "");
}

}  // namespace
}  // namespace tessera::emulator::test::warpgroup
