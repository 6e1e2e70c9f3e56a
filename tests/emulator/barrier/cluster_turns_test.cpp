// Clusters that synchronize through global memory: the order in which they meet, and when they run side by side.

#include <algorithm>
#include <set>

#include "schedules.hpp"

using namespace tessera::emulator;
using namespace tessera::emulator::test;

namespace {

const std::string kernels = module_text("sm_90", R"(
.func add_one(.param .u64 counter)
{
    .reg .b32 r<2>; .reg .b64 d<2>;
    ld.param.u64 d0, [counter];
    atom.global.add.u32 r0, [d0], 1;
    ret;
}

// Each CTA takes a ticket.
.visible .entry tickets(.param .u64 counter, .param .u64 results)
{
    .reg .b32 r<4>; .reg .b64 d<4>;
    ld.param.u64 d0, [counter];
    ld.param.u64 d1, [results];
    atom.global.add.u32 r0, [d0], 1;
    mov.u32 r1, %ctaid.x;
    mul.wide.u32 d2, r1, 4;
    add.u64 d1, d1, d2;
    st.global.u32 [d1], r0;
    ret;
}

// CTA i waits until the lock is exactly i, notes what it has read, and opens for the next one.
.visible .entry turnstile(.param .u64 lock, .param .u64 results)
{
    .reg .pred p; .reg .b32 r<4>; .reg .b64 d<4>;
    ld.param.u64 d0, [lock];
    ld.param.u64 d1, [results];
    mov.u32 r1, %ctaid.x;
poll:
    ld.acquire.gpu.global.u32 r0, [d0];
    setp.ne.u32 p, r0, r1;
    @p bra poll;
    mul.wide.u32 d2, r1, 4;
    add.u64 d1, d1, d2;
    st.global.u32 [d1], r0;
    add.u32 r0, r0, 1;
    st.release.gpu.global.u32 [d0], r0;
    ret;
}

// All CTAs arrive and wait for the exact number of arrivals, four times. On a GPU a CTA polls more often than others
// can arrive again; nothing guarantees that it sees the number.
.visible .entry exact_arrivals(.param .u64 lock)
{
    .reg .pred p; .reg .b32 r<6>; .reg .b64 d<4>;
    ld.param.u64 d0, [lock];
    mov.u32 r1, %nctaid.x;
    mov.u32 r2, 0;
    mov.u32 r5, 0;
again:
    add.u32 r2, r2, r1;
    atom.global.add.u32 r3, [d0], 1;
poll:
    atom.global.cas.b32 r4, [d0], r2, r2;
    setp.ne.u32 p, r4, r2;
    @p bra poll;
    add.u32 r5, r5, 1;
    setp.lt.u32 p, r5, 4;
    @p bra again;
    ret;
}

// CTA 0 takes a lock, looks whether the slot is full, and gives the lock back, until it is. Warp 0 of CTA 1 has a mutex,
// fills the slot once it finds the lock free, and gives the mutex back; warp 1 waits for the mutex. In turns of equal
// length, warp 0 finds the lock taken for ever.
.visible .entry in_step(.param .u64 words)
{
    .reg .pred p; .reg .b32 r<4>; .reg .b64 d<2>;
    ld.param.u64 d0, [words];  // lock, full, mutex, begun
    mov.u32 r0, %tid.x;
    and.b32 r1, r0, 31;
    setp.ne.u32 p, r1, 0;
    @p bra done;
    mov.u32 r1, %ctaid.x;
    setp.ne.u32 p, r1, 0;
    @p bra fill;
    setp.ne.u32 p, r0, 0;
    @p bra done;
look:
    atom.global.or.b32 r2, [d0], 1;
    setp.ne.u32 p, r2, 0;
    @p bra look;
    fence.acq_rel.gpu;
    ld.volatile.global.u32 r3, [d0+4];
    fence.acq_rel.gpu;
    atom.global.and.b32 r2, [d0], 0;
    fence.acq_rel.gpu;
    setp.eq.u32 p, r3, 0;
    @p bra look;
    bra done;
fill:
    setp.ne.u32 p, r0, 0;
    @p bra mutex;
    atom.global.or.b32 r2, [d0+8], 1;
    atom.global.add.u32 r2, [d0+12], 1;
taken:
    atom.global.or.b32 r2, [d0], 1;
    setp.ne.u32 p, r2, 0;
    @p bra taken;
    fence.acq_rel.gpu;
    st.volatile.global.u32 [d0+4], 1;
    fence.acq_rel.gpu;
    atom.global.and.b32 r2, [d0], 0;
    atom.global.and.b32 r2, [d0+8], 0;
    bra done;
mutex:
    atom.global.add.u32 r2, [d0+12], 0;
    setp.eq.u32 p, r2, 0;
    @p bra mutex;
held:
    atom.global.or.b32 r2, [d0+8], 1;
    setp.ne.u32 p, r2, 0;
    @p bra held;
done:
    ret;
}

// All wait for what CTA `from` stores.
.visible .entry wait_for_cta(.param .u64 flag, .param .u32 from)
{
    .reg .pred p; .reg .b32 r<4>; .reg .b64 d<2>;
    ld.param.u64 d0, [flag];
    ld.param.u32 r0, [from];
    mov.u32 r1, %ctaid.x;
    setp.ne.u32 p, r0, r1;
    @p bra poll;
    st.release.gpu.global.u32 [d0], 1;
    ret;
poll:
    ld.acquire.gpu.global.u32 r2, [d0];
    setp.eq.u32 p, r2, 0;
    @p bra poll;
    ret;
}

// CTA 0 counts the others with atomics; they wait for the count with loads that do not synchronize, and with a visible
// effect in each step.
.visible .entry weak_wait(.param .u64 lock, .param .u64 results)
{
    .reg .pred p; .reg .b32 r<4>; .reg .b64 d<4>;
    ld.param.u64 d0, [lock];
    ld.param.u64 d1, [results];
    mov.u32 r1, %ctaid.x;
    mul.wide.u32 d2, r1, 4;
    add.u64 d1, d1, d2;
    setp.ne.u32 p, r1, 0;
    @p bra poll;
    atom.global.add.u32 r0, [d0], 1;
    ret;
poll:
    ld.global.cg.u32 r0, [d0];
    st.global.u32 [d1], r0;
    setp.eq.u32 p, r0, 0;
    @p bra poll;
    ret;
}

// A sum that depends on the order of its terms.
.visible .entry rounded_sum(.param .u64 sum)
{
    .reg .b32 r<2>; .reg .f32 f<4>; .reg .b64 d<2>;
    ld.param.u64 d0, [sum];
    mov.u32 r0, %ctaid.x;
    cvt.rn.f32.u32 f0, r0;
    mul.f32 f0, f0, f0;
    add.f32 f0, f0, 0f3DCCCCCD;
    red.global.add.f32 [d0], f0;
    ret;
}

// Has no atomics.
.visible .entry alone(.param .u64 counter, .param .u64 results)
{
    .reg .b32 r<4>; .reg .b64 d<4>;
    ld.param.u64 d1, [results];
    mov.u32 r1, %ctaid.x;
    mul.wide.u32 d2, r1, 4;
    add.u64 d1, d1, d2;
    st.global.u32 [d1], r1;
    ret;
}

// Only CTAs from `first` on execute the atomic, in a function.
.visible .entry some(.param .u64 counter, .param .u32 first)
{
    .reg .pred p; .reg .b32 r<4>; .reg .b64 d<4>;
    ld.param.u64 d0, [counter];
    ld.param.u32 r0, [first];
    mov.u32 r1, %ctaid.x;
    setp.lt.u32 p, r1, r0;
    @p bra done;
    {
        .param .u64 argument;
        st.param.u64 [argument], d0;
        call add_one, (argument);
    }
done:
    ret;
}
)");

const std::string polling = module_text("sm_75", R"(
// The first thread of each CTA waits with ordinary loads for what CTA `from` stores.
.visible .entry plain_wait(.param .u64 flag, .param .u32 from)
{
    .reg .pred p; .reg .b32 r<4>; .reg .b64 d<2>;
    ld.param.u64 d0, [flag];
    ld.param.u32 r0, [from];
    mov.u32 r1, %ctaid.x;
    mov.u32 r3, %tid.x;
    setp.ne.u32 p, r3, 0;
    @p bra done;
    setp.ne.u32 p, r0, r1;
    @p bra poll;
    st.global.u32 [d0], 1;
done:
    bar.sync 0;
    ret;
poll:
    ld.global.u32 r2, [d0];
    setp.eq.u32 p, r2, 0;
    @p bra poll;
    bra done;
}

// Computes for long, without a visible effect, before each CTA stores.
.visible .entry compute(.param .u64 results, .param .u32 turns)
{
    .reg .pred p; .reg .b32 r<4>; .reg .b64 d<4>;
    ld.param.u64 d0, [results];
    ld.param.u32 r0, [turns];
    mov.u32 r1, %ctaid.x;
    mul.wide.u32 d1, r1, 4;
    add.u64 d0, d0, d1;
more:
    sub.u32 r0, r0, 1;
    setp.ne.u32 p, r0, 0;
    @p bra more;
    st.global.u32 [d0], r1;
    ret;
}
)");

struct Machine : PtxRun {
    explicit Machine(Schedule schedule, std::uint64_t seed = 1, unsigned threads = 1, const char* device = "h200")
        : PtxRun(std::string_view(device) == "t4" ? polling : kernels, device)
    {
        options.schedule = schedule;
        options.seed = seed;
        options.threads = threads;
    }
};

using Words = std::vector<std::uint32_t>;

constexpr Schedule schedules[] = {Schedule::in_order, Schedule::random, Schedule::adversarial};

}  // namespace

TEST_CASE("the seed chooses the order in which CTAs take tickets, and fixes it")
{
    const auto order = [](Schedule schedule, std::uint64_t seed, unsigned threads) {
        Machine run(schedule, seed, threads);
        const std::uint64_t counter = run.buffer(Words{0}), results = run.buffer(Words(8));
        REQUIRE_CLEAN(run, run.launch("tickets", {.grid = {8, 1, 1}, .block = {1, 1, 1}}, counter, results));
        return run.read<std::uint32_t>(results, 8);
    };
    const Words ascending{0, 1, 2, 3, 4, 5, 6, 7};
    CHECK(order(Schedule::in_order, 1, 1) == ascending);
    CHECK(order(Schedule::in_order, 2, 4) == ascending);
    for (const Schedule schedule : {Schedule::random, Schedule::adversarial}) {
        std::set<Words> orders;
        for (std::uint64_t seed = 1; seed <= 20; ++seed) {
            const Words found = order(schedule, seed, 1);
            CHECK(order(schedule, seed, 4) == found);
            CHECK(std::is_permutation(found.begin(), found.end(), ascending.begin()));
            orders.insert(found);
        }
        CHECK(orders.size() > 10);
    }
}

TEST_CASE("CTAs that wait for exact values of a lock: a turnstile is passed under every schedule")
{
    under_every_schedule(kernels, "h200", [](PtxRun& run) {
        constexpr std::uint32_t ctas = 20;
        const std::uint64_t lock = run.buffer(Words{0}), results = run.buffer(Words(ctas));
        REQUIRE_CLEAN(run, run.launch("turnstile", {.grid = {ctas, 1, 1}, .block = {1, 1, 1}}, lock, results));
        const Words found = run.read<std::uint32_t>(results, ctas);
        for (std::uint32_t cta = 0; cta < ctas; ++cta) {
            CHECK(found[cta] == cta);
        }
    });
}

TEST_CASE("in order, a CTA that polls sees each value of a lock; other schedules show that this is luck")
{
    const auto launch = [](PtxRun& run) {
        run.options.hang_limit = 200'000;
        run.options.hang_seconds = 0;
        return run.launch("exact_arrivals", {.grid = {20, 1, 1}, .block = {1, 1, 1}}, run.buffer(Words{0}));
    };
    Machine in_order(Schedule::in_order);
    REQUIRE_CLEAN(in_order, launch(in_order));
    unsigned missed = 0;
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        Machine run(Schedule::adversarial, seed);
        if (launch(run).code != 0) {
            CHECK_FOUND(run, FindingKind::deadlock);
            ++missed;
        }
    }
    CHECK(missed > 0);
}

TEST_CASE("clusters take turns only where they execute what synchronizes them")
{
    for (const Schedule schedule : schedules) {
        Machine run(schedule, 3, 4);
        const std::uint64_t counter = run.buffer(Words{0}), results = run.buffer(Words(64));
        const Shape shape{.grid = {64, 1, 1}, .block = {1, 1, 1}};
        CHECK(!run.module().find_kernel("alone")->synchronizes_clusters);
        CHECK(run.module().find_kernel("some")->synchronizes_clusters);  // through a function
        const LaunchResult alone = run.launch("alone", shape, counter, results);
        REQUIRE_CLEAN(run, alone);
        CHECK(alone.statistics.turns == 0);
        const LaunchResult none = run.launch("some", shape, counter, std::uint32_t{64});
        REQUIRE_CLEAN(run, none);
        CHECK(none.statistics.turns == 0);
        CHECK(run.read<std::uint32_t>(counter, 1)[0] == 0);
        const LaunchResult three = run.launch("some", shape, counter, std::uint32_t{61});
        REQUIRE_CLEAN(run, three);
        CHECK(three.statistics.turns >= 3);
        CHECK(run.read<std::uint32_t>(counter, 1)[0] == 3);
        const LaunchResult all = run.launch("tickets", shape, counter, results);
        REQUIRE_CLEAN(run, all);
        CHECK(all.statistics.turns >= 64);
    }
}

TEST_CASE("a rounded sum over clusters depends on the seed, and not on the number of threads")
{
    for (const Schedule schedule : schedules) {
        std::set<std::uint32_t> sums;
        for (std::uint64_t seed = 1; seed <= 8; ++seed) {
            std::set<std::uint32_t> same;
            for (const unsigned threads : {1U, 2U, 7U}) {
                Machine run(schedule, seed, threads);
                const std::uint64_t sum = run.buffer(Words{0});
                const LaunchResult result = run.launch("rounded_sum", {.grid = {300, 1, 1}, .block = {1, 1, 1}}, sum);
                REQUIRE_CLEAN(run, result);
                same.insert(run.read<std::uint32_t>(sum, 1)[0]);
            }
            CHECK(same.size() == 1);
            sums.merge(same);
        }
        CHECK((sums.size() == 1) == (schedule == Schedule::in_order));
    }
}

TEST_CASE("CTAs that wait with plain loads do not keep others from their turn")
{
    for (const Schedule schedule : schedules) {
        Machine run(schedule);
        const std::uint64_t lock = run.buffer(Words{0}), results = run.buffer(Words(8));
        REQUIRE_CLEAN(run, run.launch("weak_wait", {.grid = {8, 1, 1}, .block = {1, 1, 1}}, lock, results));
        CHECK(run.read<std::uint32_t>(results, 8) == Words{0, 1, 1, 1, 1, 1, 1, 1});
    }
}

TEST_CASE("CTAs that wait for one that is not resident are reported; waiting for an earlier one is right")
{
    constexpr std::uint32_t ctas = 6000;
    const Shape shape{.grid = {ctas, 1, 1}, .block = {32, 1, 1}};
    for (const Schedule schedule : schedules) {
        Machine run(schedule);
        run.options.hang_limit = 100'000;
        run.options.hang_seconds = 0;
        const LaunchResult earlier = run.launch("wait_for_cta", shape, run.buffer(Words{0}), std::uint32_t{0});
        REQUIRE_CLEAN(run, earlier);
        const LaunchResult later = run.launch("wait_for_cta", shape, run.buffer(Words{0}), ctas - 1);
        CHECK(later.code == 702);
        CHECK_FOUND(run, FindingKind::deadlock);
        const std::string text = findings_text(run);
        CAPTURE(text);
        CHECK(text.find("all clusters that run poll memory") != std::string::npos);
        CHECK(text.find("of the grid's 6000 clusters of 1 CTAs have not started: 4224 run at a time") !=
              std::string::npos);
        CHECK(text.find("cudaOccupancyMaxActiveBlocksPerMultiprocessor") != std::string::npos);
    }
}

TEST_CASE("CTAs that poll with ordinary loads let the one run that they wait for")
{
    for (const Schedule schedule : schedules) {
        for (const std::uint32_t from : {0U, 7U}) {
            Machine run(schedule, 1, 1, "t4");
            REQUIRE_CLEAN(
                run, run.launch("plain_wait", {.grid = {8, 1, 1}, .block = {64, 1, 1}}, run.buffer(Words{0}), from));
        }
    }
}

TEST_CASE("CTAs that poll with ordinary loads what none writes, or a CTA that is not resident, are reported")
{
    for (const Schedule schedule : schedules) {
        for (const bool resident : {true, false}) {
            CAPTURE(resident);
            Machine run(schedule, 1, 1, "t4");  // has place for 40 CTAs of this size
            run.options.hang_seconds = 0;
            run.options.hang_limit = 2'000'000;
            const LaunchResult result =
                run.launch("plain_wait", {.grid = {resident ? 20U : 50U, 1, 1}, .block = {1024, 1, 1}},
                           run.buffer(Words{0}), std::uint32_t{resident ? 20U : 49U});
            CHECK(result.code == 702);
            const std::string text = findings_text(run);
            CAPTURE(text);
            CHECK_FOUND(run, FindingKind::deadlock);
            CHECK(text.find("all clusters that run poll memory") != std::string::npos);
            CHECK((text.find("of the grid's 50 clusters of 1 CTAs have not started: 40 run at a time") !=
                   std::string::npos) == !resident);
        }
    }
}

TEST_CASE("CTAs that compute for long do not count as polling")
{
    for (const Schedule schedule : schedules) {
        Machine run(schedule, 1, 1, "t4");
        run.options.hang_seconds = 0;
        run.options.hang_limit = 10'000;
        const std::uint64_t results = run.buffer(Words(8));
        REQUIRE_CLEAN(run, run.launch("compute", {.grid = {8, 1, 1}}, results, std::uint32_t{200'000}));
        CHECK(run.read<std::uint32_t>(results, 8) == Words{0, 1, 2, 3, 4, 5, 6, 7});
    }
}

TEST_CASE("CTAs that poll in step do not keep each other waiting for ever")
{
    for (const Schedule schedule : schedules) {
        Machine run(schedule);
        const std::uint64_t words = run.buffer(Words{0, 0, 0, 0});
        REQUIRE_CLEAN(run, run.launch("in_step", {.grid = {2, 1, 1}, .block = {64, 1, 1}}, words));
        CHECK(run.read<std::uint32_t>(words, 2) == Words{0, 1});
    }
}

TEST_CASE("all CTAs are resident, and all wait for a value that none writes")
{
    for (const Schedule schedule : schedules) {
        Machine run(schedule);
        run.options.hang_limit = 100'000;
        run.options.hang_seconds = 0;
        const LaunchResult result =
            run.launch("wait_for_cta", {.grid = {8, 1, 1}}, run.buffer(Words{0}), std::uint32_t{8});
        CHECK(result.code == 702);
        CHECK_FOUND(run, FindingKind::deadlock);
        CHECK(findings_text(run).find("have not started") == std::string::npos);
    }
}
