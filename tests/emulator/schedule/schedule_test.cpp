// Schedules that are recorded and replayed, and the schedule by priorities: it finds what few orders show.

#include <cmath>
#include <set>

#include "machine/recording.hpp"
#include "machine/trace.hpp"
#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

const std::string kernels = module_text("sm_90", R"(
// Warp 0 counts up two words, one after the other. Warp 1 traps if it sees the first one counted and the second not,
// as it does in one order only. Other warps count elsewhere. `times` is how often each warp has counted before.
.visible .entry window(.param .u32 times)
{
    .reg .pred p, q; .reg .b32 r<12>;
    .shared .align 4 .b32 first;
    .shared .align 4 .b32 second;
    .shared .align 4 .b32 other;
    mov.u32 r0, %tid.x;
    shr.u32 r1, r0, 5;
    ld.param.u32 r9, [times];
    setp.ne.u32 p, r0, 0;
    @p bra ready;
    st.shared.u32 [first], 0;
    st.shared.u32 [second], 0;
    st.shared.u32 [other], 0;
ready:
    bar.sync 0;
again:
    setp.eq.u32 p, r9, 0;
    @p bra start;
    atom.shared.add.u32 r2, [other], 1;
    sub.u32 r9, r9, 1;
    bra again;
start:
    and.b32 r3, r0, 31;
    setp.ne.u32 p, r3, 0;
    @p bra done;
    setp.eq.u32 p, r1, 0;
    @p bra counts;
    setp.eq.u32 p, r1, 1;
    @!p bra done;
    atom.shared.add.u32 r4, [first], 0;
    atom.shared.add.u32 r5, [second], 0;
    setp.ne.u32 p, r4, 1;
    @p bra done;
    setp.ne.u32 p, r5, 0;
    @p bra done;
    trap;
counts:
    atom.shared.add.u32 r6, [first], 1;
    atom.shared.add.u32 r7, [second], 1;
done:
    ret;
}

// The same with one operation more.
.visible .entry changed(.param .u32 times)
{
    .reg .b32 r<12>;
    .shared .align 4 .b32 other;
    ld.param.u32 r9, [times];
    st.shared.volatile.u32 [other], r9;
    atom.shared.add.u32 r2, [other], 1;
    atom.shared.add.u32 r2, [other], 1;
    ret;
}

// Each CTA takes tickets, and stores the last.
.visible .entry tickets(.param .u64 counter, .param .u64 results)
{
    .reg .pred p; .reg .b32 r<6>; .reg .b64 d<4>;
    ld.param.u64 d0, [counter];
    ld.param.u64 d1, [results];
    mov.u32 r5, 3;
again:
    atom.global.add.u32 r0, [d0], 1;
    sub.u32 r5, r5, 1;
    setp.ne.u32 p, r5, 0;
    @p bra again;
    mov.u32 r1, %ctaid.x;
    mul.wide.u32 d2, r1, 4;
    add.u64 d1, d1, d2;
    st.global.u32 [d1], r0;
    ret;
}

// CTA 0 waits for a value that none writes.
.visible .entry hangs(.param .u64 flag)
{
    .reg .pred p; .reg .b32 r<4>; .reg .b64 d<2>;
    ld.param.u64 d0, [flag];
poll:
    ld.acquire.gpu.global.u32 r2, [d0];
    setp.eq.u32 p, r2, 0;
    @p bra poll;
    ret;
}

// Copies that arrive in pieces, read without waiting for them.
.visible .entry early(.param .u64 in, .param .u64 out)
{
    .reg .pred p, q; .reg .b32 r<8>; .reg .b64 d<6>;
    .shared .align 128 .b8 data[1024];
    .shared .align 8 .b64 bar;
    ld.param.u64 d0, [in];
    ld.param.u64 d1, [out];
    mov.u32 r0, %tid.x;
    mov.u32 r1, data;
    mov.u32 r2, bar;
    mad.lo.u32 r4, r0, 4, r1;
    mul.wide.u32 d2, r0, 4;
    add.u64 d3, d0, d2;
    mov.u32 r7, %ctaid.x;
    mad.lo.u32 r7, r7, 128, r0;
    mul.wide.u32 d2, r7, 4;
    add.u64 d1, d1, d2;
    setp.eq.u32 q, r0, 0;
    @q mbarrier.init.shared::cta.b64 [bar], 1;
    @q fence.mbarrier_init.release.cluster;
    bar.sync 0;
    cp.async.ca.shared.global [r4+512], [d3+512], 4;
    @!q bra issued;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 512;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [r1], [d0], 512, [r2];
issued:
    ld.shared.u32 r6, [r4+512];
    cp.async.wait_all;
wait:
    mbarrier.try_wait.parity.shared::cta.b64 p, [bar], 0;
    @!p bra wait;
    ld.shared.u32 r5, [r4];
    add.u32 r5, r5, r6;
    st.global.u32 [d1], r5;
    ret;
}
)");

constexpr Schedule schedules[] = {Schedule::in_order, Schedule::random, Schedule::adversarial, Schedule::pct};

/// A fresh machine that records what it does.
struct Machine : PtxRun {
    Machine(Schedule schedule, std::uint64_t seed, unsigned threads = 1, const std::string& ptx = kernels)
        : PtxRun(ptx, "h200")
    {
        options.schedule = schedule;
        options.seed = seed;
        options.threads = threads;
        options.recorder = std::make_shared<Recorder>([this](std::string_view text) { recorded += text; });
    }
    /// One that replays a recording.
    Machine(const std::string& recording, unsigned threads, const std::string& ptx = kernels) : PtxRun(ptx, "h200")
    {
        options.recording = std::make_shared<ScheduleFile>(recording, "file");
        options.schedule = options.recording->schedule();
        options.seed = 12345;  // not used
        options.threads = threads;
    }
    std::string recorded;
};

/// All counts but those of the schedule pct itself.
std::string counts(const LaunchResult& result)
{
    Statistics statistics = result.statistics;
    statistics.pct_threads = statistics.pct_steps = 0;
    return to_text(statistics);
}

LaunchResult launch_window(PtxRun& run, std::uint32_t times = 8, std::uint32_t ctas = 1)
{
    return run.launch("window", {.grid = {ctas, 1, 1}, .block = {128, 1, 1}}, times);
}

struct Found {
    std::uint64_t seed = 0, tries = 0;
    std::uint64_t bound = 0;  ///< seeds in which the fault is expected once
    std::string recording, findings, message;
};

/// Tries the seeds of pct of depth 2 up to the bound that --statistics gives.
Found search(std::uint32_t depth = 2, std::uint32_t ctas = 1)
{
    Machine first(Schedule::pct, 0);
    first.options.depth = 1;  // no changes of priorities: all steps are counted
    const LaunchResult counted = launch_window(first);
    REQUIRE_CLEAN(first, counted);
    const std::uint64_t n = counted.statistics.pct_threads, k = counted.statistics.pct_steps;
    CHECK(n == 4);
    CHECK(k > 4 * 8);
    Found found;
    found.bound = n * static_cast<std::uint64_t>(std::pow(static_cast<double>(k), depth - 1));
    for (found.seed = 1; found.seed <= found.bound; ++found.seed) {
        Machine run(Schedule::pct, found.seed);
        run.options.depth = depth;
        run.options.depth_steps = k;
        const LaunchResult result = launch_window(run, 8, ctas);
        if (result.code != 0) {
            CHECK_FOUND(run, FindingKind::trap);
            found.recording = run.recorded;
            found.findings = findings_text(run);
            found.message = result.message;
            return found;
        }
    }
    found.seed = 0;
    return found;
}

}  // namespace

TEST_CASE("a fault that one order shows is found within the seeds of the bound, and not without changes of priority")
{
    Machine in_order(Schedule::in_order, 1);
    REQUIRE_CLEAN(in_order, launch_window(in_order));
    for (std::uint64_t seed = 1; seed <= 200; ++seed) {
        Machine run(Schedule::pct, seed);
        run.options.depth = 1;
        REQUIRE_CLEAN(run, launch_window(run));
    }
    const Found found = search();
    INFO("seeds of the bound: ", found.bound);
    CHECK(found.seed != 0);
    // Without the number of steps: the bound of docs/notes/emulator-schedules.md.
    bool is_found = false;
    for (std::uint64_t seed = 1; seed <= 20 * 2 * found.bound && !is_found; ++seed) {
        Machine run(Schedule::pct, seed);
        run.options.depth = 2;
        is_found = launch_window(run).code != 0;
    }
    CHECK(is_found);
}

TEST_CASE("a recorded failure replays to the same finding, with any number of threads")
{
    for (const std::uint32_t ctas : {1U, 9U}) {
        const Found found = search(2, ctas);
        REQUIRE(found.seed != 0);
        for (const unsigned threads : {1U, 2U, 7U}) {
            CAPTURE(threads);
            Machine replay(found.recording, threads);
            const LaunchResult result = launch_window(replay, 8, ctas);
            INFO(result.message);
            CHECK(result.schedule_fits);
            CHECK(result.code == 719);
            CHECK(result.message == found.message);
            CHECK(findings_text(replay) == found.findings);
        }
    }
}

TEST_CASE("under every schedule, a replay does the same: results, findings and counts")
{
    const auto launch = [](PtxRun& run) {
        const std::uint64_t counter = run.buffer(std::vector<std::uint32_t>{0});
        const std::uint64_t results = run.buffer(std::vector<std::uint32_t>(8));
        std::vector<std::uint32_t> input(1024);
        for (std::uint32_t i = 0; i < input.size(); ++i) {
            input[i] = i * 3 + 1;
        }
        const std::uint64_t in = run.buffer(input), out = run.buffer(std::vector<std::uint32_t>(512));
        std::string text;
        for (int i = 0; i < 2; ++i) {  // two launches of one kernel have two schedules
            const LaunchResult result = run.launch("tickets", {.grid = {8, 1, 1}}, counter, results);
            text += counts(result) + result.message;
            for (const std::uint32_t value : run.read<std::uint32_t>(results, 8)) {
                text += std::to_string(value) + " ";
            }
        }
        const LaunchResult result = run.launch("early", {.grid = {4, 1, 1}, .block = {128, 1, 1}}, in, out);
        text += counts(result) + result.message;
        // Which CTA is named as the first depends on the threads.
        std::set<std::string> findings;
        for (const Finding& finding : run.report.findings()) {
            findings.insert(std::string(name_of(finding.kind)) + " " + std::to_string(finding.ptx_line) + " " +
                            std::to_string(finding.count) + "\n");
        }
        for (const std::string& finding : findings) {
            text += finding;
        }
        for (const std::uint32_t value : run.read<std::uint32_t>(out, 512)) {
            text += std::to_string(value) + " ";
        }
        return text;
    };
    std::set<std::string> different;
    for (const Schedule schedule : schedules) {
        for (std::uint64_t seed = 1; seed <= 4; ++seed) {
            CAPTURE(static_cast<int>(schedule));
            CAPTURE(seed);
            Machine run(schedule, seed);
            run.options.same_value_races = true;
            const std::string text = launch(run);
            CHECK(text.find("async-read-pending") != std::string::npos);
            different.insert(text);
            for (const unsigned threads : {1U, 3U}) {
                Machine replay(run.recorded, threads);
                replay.options.same_value_races = true;
                CHECK(launch(replay) == text);
            }
        }
    }
    CHECK(different.size() > 4);
}

TEST_CASE("a hang is recorded where it was found, whatever time a replay takes")
{
    for (const Schedule schedule : schedules) {
        for (const std::uint32_t ctas : {1U, 4U}) {
            CAPTURE(static_cast<int>(schedule));
            CAPTURE(ctas);
            Machine run(schedule, 3, 2);
            run.options.hang_limit = 2'000;
            run.options.hang_seconds = 0;
            const LaunchResult result =
                run.launch("hangs", {.grid = {ctas, 1, 1}}, run.buffer(std::vector<std::uint32_t>{0}));
            REQUIRE(result.code == 702);
            Machine replay(run.recorded, 1);
            replay.options.hang_limit = 2'000;
            replay.options.hang_seconds = 1e9;
            const LaunchResult again =
                replay.launch("hangs", {.grid = {ctas, 1, 1}}, replay.buffer(std::vector<std::uint32_t>{0}));
            CHECK(again.schedule_fits);
            CHECK(again.message == result.message);
            CHECK(findings_text(replay) == findings_text(run));
        }
    }
}

TEST_CASE("a recording of another program is refused, with the first choice that does not fit")
{
    Machine run(Schedule::random, 5);
    REQUIRE_CLEAN(run, launch_window(run));
    const auto message = [](const std::string& recording, const std::string& kernel, std::uint32_t block = 128) {
        Machine replay(recording, 1);
        const LaunchResult result = replay.launch(kernel, {.block = {block, 1, 1}}, std::uint32_t{8});
        CHECK(!result.schedule_fits);
        CHECK(result.code == 719);
        CHECK(replay.report.findings().empty());
        return result.message;
    };
    CHECK(message(run.recorded, "changed") ==
          "the recorded schedule does not fit: file has no launch 1 of changed. Replay it with the program, the input "
          "and the options with which it was recorded");
    CHECK(message(run.recorded, "window", 64)
              .find("has grid, block and cluster 1,1,1 64,1,1 1,1,1; in file it has "
                    "1,1,1 128,1,1 1,1,1") != std::string::npos);
    std::string renamed = run.recorded;
    renamed.replace(renamed.find(" window\n"), 8, " changed\n");
    const std::string found = message(renamed, "changed");
    CAPTURE(found);
    CHECK(found.find("The first choice that does not is \"") != std::string::npos);
    CHECK(found.find("in file, line ") != std::string::npos);
    CHECK(found.find("(cluster 0 of launch 1 of changed)") != std::string::npos);
    // The same program with another input: it does not get as far, or farther.
    for (const std::uint32_t times : {7U, 9U}) {
        Machine replay(run.recorded, 1);
        const LaunchResult result = launch_window(replay, times);
        CHECK(!result.schedule_fits);
        CHECK(result.message.find("the recorded schedule does not fit") == 0);
    }
}

TEST_CASE("a recording that was cut off or damaged is refused by its name")
{
    Machine run(Schedule::random, 5);
    REQUIRE_CLEAN(run, launch_window(run, 1));
    const std::string& text = run.recorded;
    const auto refusal = [](const std::string& damaged) {
        try {
            const ScheduleFile recording(damaged, "file.txt");
        } catch (const std::runtime_error& refused) {
            return std::string(refused.what());
        }
        return std::string();
    };
    CHECK(refusal(text).empty());
    const std::size_t launches = text.find("launch 1");
    REQUIRE(launches != std::string::npos);
    for (std::size_t size = 0; size < text.size(); ++size) {
        if (size == launches) {
            continue;  // a file without launches
        }
        CAPTURE(size);
        const std::string said = refusal(text.substr(0, size));
        CHECK(said.starts_with("file.txt"));
        CHECK((said.find("cut off after line") != std::string::npos || size < 22));
    }
    // Each line in turn becomes something else.
    std::size_t line = 0;
    for (std::size_t start = 0; start < text.size(); start = text.find('\n', start) + 1) {
        ++line;
        const std::size_t end = text.find('\n', start);
        for (const std::string other : {"", "x", "warp 1", "warp 1 2 3", "warp -1 2 @3", "portion 7 of 7", "end"}) {
            std::string damaged = text;
            damaged.replace(start, end - start, other);
            const std::string said = refusal(damaged);
            CAPTURE(line);
            CAPTURE(other);
            CHECK(said.starts_with("file.txt is "));
            CHECK((said.find("line " + std::to_string(line) + " ") != std::string::npos || line == 1));
        }
        // A lost line, or one twice.
        CHECK(!refusal(text.substr(0, start) + text.substr(end + 1)).empty());
        CHECK(!refusal(text.substr(0, end + 1) + text.substr(start)).empty());
    }
    CHECK(refusal("tessera-emu schedule 2\n").find("its first line is not \"tessera-emu schedule 1\"") !=
          std::string::npos);
}

TEST_CASE("a trace changes nothing; its slices have all steps, and its arrows three ends")
{
    const auto launch = [](PtxRun& run) {
        std::vector<std::uint32_t> input(1024, 7);
        const std::uint64_t in = run.buffer(input), out = run.buffer(std::vector<std::uint32_t>(768));
        return run.launch("early", {.grid = {6, 1, 1}, .block = {128, 1, 1}}, in, out);
    };
    const auto occurrences = [](const std::string& text, const std::string& part) {
        std::size_t count = 0;
        for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
            ++count;
        }
        return count;
    };
    for (const Schedule schedule : schedules) {
        CAPTURE(static_cast<int>(schedule));
        Machine without(schedule, 3, 2), with(schedule, 3, 2);
        std::string events;
        const auto trace = std::make_shared<Trace>([&](std::string_view text) { events += text; });
        with.options.monitor = trace;
        const LaunchResult expected = launch(without), result = launch(with);
        CHECK(to_text(result.statistics) == to_text(expected.statistics));
        CHECK(with.recorded == without.recorded);
        CHECK(trace->clusters_cut() == 0);
        std::uint64_t steps = 0;
        for (std::size_t at = 0; at < events.size(); at = events.find('\n', at) + 1) {
            const std::string line = events.substr(at, events.find('\n', at) - at);
            const auto number = [&](const std::string& name) {
                const std::size_t found = line.find("\"" + name + "\": ");
                return found == std::string::npos ? 0 : std::stoull(line.substr(found + name.size() + 4));
            };
            steps += line.find("\"runs\"") != std::string::npos ? number("dur") : number("steps");
            if (events.find('\n', at) == std::string::npos) {
                break;
            }
        }
        CHECK(steps == result.statistics.scheduler_steps);
        CHECK(occurrences(events, "\"process_name\"") == 1 + result.statistics.ctas);
        const std::size_t arrows = occurrences(events, "\"ph\": \"s\"");
        CHECK(arrows == result.statistics.barrier_waits);
        CHECK(occurrences(events, "\"ph\": \"t\"") == arrows);
        CHECK(occurrences(events, "\"ph\": \"f\"") == arrows);

        Machine small(schedule, 3, 1);
        const auto little = std::make_shared<Trace>([](std::string_view) {}, 30);
        small.options.monitor = little;
        CHECK(to_text(launch(small).statistics) == to_text(expected.statistics));
        CHECK(little->clusters_cut() > 0);
    }
}
