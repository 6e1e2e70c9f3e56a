#include "checks/shared_shadow.hpp"

#include <doctest/doctest.h>

#include <array>
#include <deque>
#include <string>

namespace tessera::emulator {

namespace {

constexpr Agent warp0 = 0, warp1 = 1, warp2 = 2;

struct Bench {
    Clocks clocks{4};
    SharedShadow shadow{4096, clocks};
    std::deque<ReadSite> sites{};

    auto write(Agent agent, std::uint32_t offset, std::uint32_t size = 4, bool atomic = false)
    {
        return shadow.write(agent, offset, size, Proxy::generic, "st", 10 + agent, atomic);
    }
    auto read(Agent agent, std::uint32_t offset, std::uint32_t size = 4, bool atomic = false)
    {
        return shadow.read(agent, offset, size, Proxy::generic, "ld", 20 + agent, atomic);
    }
    auto copy_in(Agent agent, std::uint32_t offset, std::uint32_t size)
    {
        return shadow.write(agent, offset, size, Proxy::async, "bulk copy", 30);
    }
    auto copy_out(Agent agent, std::uint32_t offset, std::uint32_t size)
    {
        return shadow.read(agent, offset, size, Proxy::async, "bulk store", 31);
    }
    /// Every agent learns every other agent's past.
    void barrier(bool begins_interval = false)
    {
        SyncPoint point;
        for (Agent agent = 0; agent < 4; ++agent) {
            clocks.release(agent, point);
        }
        for (Agent agent = 0; agent < 4; ++agent) {
            clocks.acquire(agent, point);
        }
        if (begins_interval) {
            clocks.begin_interval(point);
        }
    }
    /// Lane i reads 4 bytes at offset + 4 * i.
    bool read_early(Agent agent, std::uint32_t offset, std::uint32_t line = 40)
    {
        return shadow.read_early(agent, {nullptr, offset, offset + 124, 4, AccessShape::row}, all_lanes, 4,
                                 sites.emplace_back(ReadSite{"ld.row", line}));
    }
};

void expect(const std::optional<ShadowFinding>& found, FindingKind kind)
{
    REQUIRE(found.has_value());
    INFO(found->message);
    CHECK(found->kind == kind);
}

std::array<std::uint32_t, 32> row(std::uint32_t first, std::uint32_t stride)
{
    std::array<std::uint32_t, 32> offsets{};
    for (std::uint32_t i = 0; i < 32; ++i) {
        offsets[i] = first + i * stride;
    }
    return offsets;
}

}  // namespace

TEST_CASE("uninitialized bytes are found exactly")
{
    Bench b;
    expect(b.read(warp0, 0), FindingKind::uninitialized_shared);
    CHECK_FALSE(b.write(warp0, 5, 2));
    CHECK_FALSE(b.read(warp0, 5, 2));
    expect(b.read(warp0, 4, 2), FindingKind::uninitialized_shared);
    expect(b.read(warp0, 6, 2), FindingKind::uninitialized_shared);
    CHECK(b.shadow.initialized(5, 2));
    CHECK_FALSE(b.shadow.initialized(4, 2));
    b.shadow.mark_initialized(100, 30);
    CHECK_FALSE(b.read(warp0, 100, 30));
    CHECK(b.shadow.initialized(100, 30));
    CHECK_FALSE(b.shadow.initialized(99, 31));
    CHECK_FALSE(b.shadow.initialized(100, 31));
}

TEST_CASE("two warps without a barrier race, unless both read")
{
    Bench b;
    b.shadow.mark_initialized(0, 4096);
    SUBCASE("write, read")
    {
        CHECK_FALSE(b.write(warp0, 64));
        const auto found = b.read(warp1, 64);
        expect(found, FindingKind::shared_race);
        CHECK(found->message.find("0x440") != std::string::npos);    // the address in the window
        CHECK(found->message.find("line 10") != std::string::npos);  // of the other access
        CHECK_FALSE(b.read(warp1, 68));
    }
    SUBCASE("write, write")
    {
        CHECK_FALSE(b.write(warp0, 64));
        expect(b.write(warp1, 64), FindingKind::shared_race);
    }
    SUBCASE("read, write")
    {
        CHECK_FALSE(b.read(warp0, 64));
        expect(b.write(warp1, 64), FindingKind::shared_race);
    }
    SUBCASE("read, read, write: both readers count")
    {
        CHECK_FALSE(b.read(warp0, 64));
        CHECK_FALSE(b.read(warp1, 64));
        SyncPoint from1;
        b.clocks.release(warp1, from1);
        b.clocks.acquire(warp2, from1);
        expect(b.write(warp2, 64), FindingKind::shared_race);  // warp 0 may still read
    }
    SUBCASE("with barriers there is no finding")
    {
        for (unsigned i = 0; i < 10; ++i) {
            CHECK_FALSE(b.write(static_cast<Agent>(i % 4), 64));
            b.barrier();
            for (Agent agent = 0; agent < 4; ++agent) {
                CHECK_FALSE(b.read(agent, 64));
            }
            b.barrier();
        }
    }
    SUBCASE("a warp does not race with itself")
    {
        CHECK_FALSE(b.write(warp0, 64));
        CHECK_FALSE(b.read(warp0, 64));
        CHECK_FALSE(b.write(warp0, 64));
    }
}

TEST_CASE("neighbouring bytes of a word do not race")
{
    Bench b;
    b.shadow.mark_initialized(0, 4096);
    CHECK_FALSE(b.write(warp0, 64, 1));
    CHECK_FALSE(b.write(warp1, 65, 1));
    CHECK_FALSE(b.write(warp2, 66, 2));
    CHECK_FALSE(b.read(warp2, 66, 2));
    expect(b.read(warp0, 66, 1), FindingKind::shared_race);
    CHECK_FALSE(b.read(warp0, 200, 1));
    CHECK_FALSE(b.write(warp1, 201, 1));
}

TEST_CASE("atomics race with plain accesses, not with each other")
{
    Bench b;
    b.shadow.mark_initialized(0, 4096);
    CHECK_FALSE(b.write(warp0, 64, 4, true));
    CHECK_FALSE(b.write(warp1, 64, 4, true));
    CHECK_FALSE(b.read(warp2, 64, 4, true));
    CHECK_FALSE(b.write(warp0, 64, 4, true));
    expect(b.read(warp2, 64, 4, false), FindingKind::shared_race);
    CHECK_FALSE(b.read(warp1, 128, 4, false));
    expect(b.write(warp0, 128, 4, true), FindingKind::shared_race);
}

TEST_CASE("a whole warp's accesses: contiguous, broadcast, strided, masked")
{
    Bench b;
    const auto contiguous = row(256, 4), broadcast = row(256, 0), strided = row(256, 8);
    CHECK_FALSE(b.shadow.write_lanes(warp0, contiguous.data(), all_lanes, 4, "st", 1));
    CHECK(b.shadow.initialized(256, 128));
    CHECK_FALSE(b.shadow.initialized(252, 4));
    CHECK_FALSE(b.shadow.initialized(384, 4));
    CHECK_FALSE(b.shadow.read_lanes(warp0, contiguous.data(), all_lanes, 4, "ld", 2));
    expect(b.shadow.read_lanes(warp1, contiguous.data(), all_lanes, 4, "ld", 2), FindingKind::shared_race);
    expect(b.shadow.read_lanes(warp1, broadcast.data(), all_lanes, 4, "ld", 2), FindingKind::shared_race);
    expect(b.shadow.read_lanes(warp1, strided.data(), 0x3, 4, "ld", 2), FindingKind::shared_race);
    b.barrier();
    CHECK_FALSE(b.shadow.read_lanes(warp1, contiguous.data(), all_lanes, 4, "ld", 2));
    CHECK_FALSE(b.shadow.read_lanes(warp1, broadcast.data(), all_lanes, 4, "ld", 2));
    expect(b.shadow.read_lanes(warp1, strided.data(), all_lanes, 4, "ld", 2), FindingKind::uninitialized_shared);
    CHECK_FALSE(b.shadow.read_lanes(warp1, strided.data(), 0x0000FFFF, 4, "ld", 2));  // lane 16 is the first outside
    CHECK_FALSE(b.shadow.write_lanes(warp1, strided.data(), 0x80000000, 4, "st", 3));
    CHECK(b.shadow.initialized(256 + 31 * 8, 4));
    const auto bytes = row(2048, 1), wide = row(1024, 16);
    CHECK_FALSE(b.shadow.write_lanes(warp1, bytes.data(), all_lanes, 1, "st", 4));
    CHECK(b.shadow.initialized(2048, 32));
    CHECK_FALSE(b.shadow.write_lanes(warp1, wide.data(), all_lanes, 16, "st", 5));
    CHECK(b.shadow.initialized(1024, 512));
}

TEST_CASE("a read before an asynchronous write completes is reported")
{
    Bench b;
    const Agent copy = b.clocks.begin_async(warp0);
    b.shadow.begin(copy, 512, 256, true, "bulk copy", 30);
    expect(b.read(warp0, 512), FindingKind::async_read_pending);  // not complete yet
    expect(b.read(warp0, 764), FindingKind::async_read_pending);
    expect(b.write(warp0, 600), FindingKind::stage_overwritten);
    expect(b.read(warp0, 768), FindingKind::uninitialized_shared);  // after its end
    CHECK_FALSE(b.write(warp0, 508));
    (void)b.copy_in(copy, 512, 256);  // races with the accesses to its bytes above
    b.shadow.end(copy);
    expect(b.read(warp1, 512), FindingKind::async_read_pending);  // complete, but nothing waited for it
    SyncPoint barrier;
    b.clocks.complete_async(copy, barrier);
    b.clocks.end_async(copy);
    b.clocks.acquire(warp2, barrier);
    CHECK_FALSE(b.read(warp2, 516));
    expect(b.read(warp1, 516), FindingKind::async_read_pending);
}

TEST_CASE("a write to memory that asynchronous work still reads is reported")
{
    Bench b;
    b.shadow.mark_initialized(0, 4096);
    const Agent mma = b.clocks.begin_async(warp0);
    b.shadow.begin(mma, 1024, 512, false, "tcgen05.mma", 40);
    CHECK_FALSE(b.read(warp1, 1024));  // reading next to it is allowed
    expect(b.write(warp1, 1100), FindingKind::stage_overwritten);
    const Agent copy = b.clocks.begin_async(warp1);
    expect(b.copy_in(copy, 1024, 512), FindingKind::stage_overwritten);
    CHECK_FALSE(b.copy_in(copy, 1536, 512));
    b.clocks.end_async(copy);
    SUBCASE("the read is complete but not known to be")
    {
        CHECK_FALSE(b.shadow.read(mma, 2048, 64, Proxy::async, "tcgen05.mma", 40));
        b.shadow.end(mma);
        expect(b.write(warp2, 2048), FindingKind::stage_overwritten);
        expect(b.copy_in(b.clocks.begin_async(warp2), 2052, 4), FindingKind::stage_overwritten);
    }
    SUBCASE("... and with its commit")
    {
        CHECK_FALSE(b.shadow.read(mma, 2048, 64, Proxy::async, "tcgen05.mma", 40));
        b.shadow.end(mma);
        SyncPoint commit;
        b.clocks.complete_async(mma, commit);
        b.clocks.acquire(warp2, commit);
        CHECK_FALSE(b.copy_in(b.clocks.begin_async(warp2), 2048, 64));
    }
}

TEST_CASE(
    "a copy that is issued over a stage whose MMA has not run is the copy's fault; an MMA issued too early its own")
{
    Bench b;
    b.shadow.mark_initialized(0, 4096);
    const Agent first = b.clocks.begin_async(warp0), second = b.clocks.begin_async(warp0);
    SUBCASE("the MMA came first")
    {
        b.shadow.begin(first, 0, 256, false, "tcgen05.mma", 40);
        b.shadow.begin(second, 0, 256, true, "bulk copy", 41);
        expect(b.shadow.read(first, 0, 256, Proxy::async, "tcgen05.mma", 40), FindingKind::stage_overwritten);
    }
    SUBCASE("the copy came first")
    {
        b.shadow.begin(first, 0, 256, true, "bulk copy", 41);
        b.shadow.begin(second, 0, 256, false, "tcgen05.mma", 40);
        expect(b.shadow.read(second, 0, 256, Proxy::async, "tcgen05.mma", 40), FindingKind::async_read_pending);
    }
}

TEST_CASE("each writing lane needs fence.proxy.async before the async proxy reads its writes")
{
    Bench b;
    const auto contiguous = row(0, 4);
    CHECK_FALSE(b.shadow.write_lanes(warp0, contiguous.data(), all_lanes, 4, "st.shared", 50));
    LaneMask fenced = 0;
    bool finding = true;
    SUBCASE("none") {}
    SUBCASE("one lane") { fenced = 1; }
    SUBCASE("all but one") { fenced = ~LaneMask{1 << 7}; }
    SUBCASE("all")
    {
        fenced = all_lanes;
        finding = false;
    }
    if (fenced != 0) {
        b.clocks.proxy_fence(warp0, fenced);
    }
    b.barrier();
    const auto found = b.copy_out(b.clocks.begin_async(warp1), 0, 128);
    CHECK(found.has_value() == finding);
    if (finding) {
        expect(found, FindingKind::missing_proxy_fence);
        CHECK(found->message.find("line 50") != std::string::npos);
    }
    CHECK_FALSE(b.read(warp1, 0, 128));  // the generic proxy sees it anyway
}

TEST_CASE("a fence by another warp than the writer is not enough")
{
    Bench b;
    CHECK_FALSE(b.write(warp0, 0, 64));
    b.barrier();
    b.clocks.proxy_fence(warp1, all_lanes);
    expect(b.copy_out(b.clocks.begin_async(warp1), 0, 64), FindingKind::missing_proxy_fence);
}

TEST_CASE("asynchronous writes need no fence before asynchronous reads")
{
    Bench b;
    const Agent load = b.clocks.begin_async(warp0);
    CHECK_FALSE(b.copy_in(load, 0, 1024));
    SyncPoint barrier;
    b.clocks.complete_async(load, barrier);
    b.clocks.end_async(load);
    b.clocks.acquire(warp1, barrier);
    CHECK_FALSE(b.shadow.read(b.clocks.begin_async(warp1), 0, 1024, Proxy::async, "tcgen05.mma", 60));
}

TEST_CASE("a write to an mbarrier's memory is reported")
{
    Bench b;
    b.shadow.mark_barrier(40, true);
    CHECK_FALSE(b.write(warp0, 32, 8));
    CHECK_FALSE(b.write(warp0, 48, 8));
    expect(b.write(warp0, 44, 4), FindingKind::barrier_misuse);
    b.shadow.mark_barrier(40, false);
    CHECK_FALSE(b.write(warp0, 40, 8));
}

TEST_CASE("many readers in changing order cause no false alarm and hide no race")
{
    Clocks clocks(64);
    SharedShadow shadow(1024, clocks);
    shadow.mark_initialized(0, 1024);
    SyncPoint point;
    std::uint32_t random = 1;
    for (unsigned round = 0; round < 2000; ++round) {
        for (unsigned i = 0; i < 20; ++i) {
            random = random * 1664525 + 1013904223;
            REQUIRE_FALSE(
                shadow.read(static_cast<Agent>(random >> 26), (random >> 10) % 255 * 4, 4, Proxy::generic, "ld", 1));
        }
        const auto writer = static_cast<Agent>(round % 64);
        if (round % 100 == 99) {  // reads of this round by others are not ordered before it
            const Agent reader = static_cast<Agent>((writer + 1) % 64);
            REQUIRE_FALSE(shadow.read(reader, 1020, 4, Proxy::generic, "ld", 1));
            expect(shadow.write(writer, 1020, 4, Proxy::generic, "st", 2), FindingKind::shared_race);
        }
        for (Agent agent = 0; agent < 64; ++agent) {
            clocks.release(agent, point);
        }
        for (Agent agent = 0; agent < 64; ++agent) {
            clocks.acquire(agent, point);
        }
        if (round % 7 == 0) {
            REQUIRE_FALSE(shadow.write(writer, 0, 1020, Proxy::generic, "st", 2));
            clocks.release(writer, point);
            for (Agent agent = 0; agent < 64; ++agent) {
                clocks.acquire(agent, point);
            }
        }
    }
}

TEST_CASE("a read that was only noted is found by a write without a barrier, with its own words")
{
    Bench b;
    CHECK_FALSE(b.read_early(warp0, 256));  // never written
    CHECK_FALSE(b.write(warp0, 256, 128));
    CHECK_FALSE(b.read_early(warp0, 256));  // written since the last barrier
    b.barrier(true);
    CHECK(b.read_early(warp0, 256, 41));
    CHECK(b.read_early(warp1, 256, 42));
    CHECK_FALSE(b.read_early(warp1, 260));  // one word too many was never written
    SUBCASE("another warp writes")
    {
        const auto found = b.write(warp2, 300);
        expect(found, FindingKind::shared_race);
        CHECK(found->message.find("ld.row (warp 0 of the cluster, PTX line 41) read it") != std::string::npos);
        CHECK_FALSE(b.read_early(warp1, 256));
    }
    SUBCASE("a reader writes, and knows its own read")
    {
        const auto found = b.write(warp0, 300);
        expect(found, FindingKind::shared_race);
        CHECK(found->message.find("ld.row (warp 1 of the cluster, PTX line 42) read it") != std::string::npos);
    }
    SUBCASE("a warp that knows one of the readers writes")
    {
        SyncPoint point;
        b.clocks.release(warp0, point);
        b.clocks.acquire(warp2, point);
        CHECK_FALSE(b.read_early(warp2, 256));  // warp 0 happened before it: not so simple
        const auto found = b.write(warp2, 300);
        expect(found, FindingKind::shared_race);
        CHECK(found->message.find("PTX line 42) read it") != std::string::npos);
    }
    SUBCASE("asynchronous work writes")
    {
        const Agent async = b.clocks.begin_async(warp0);
        b.shadow.begin(async, 256, 128, true, "copy", 50);
        const auto found = b.copy_in(async, 256, 128);
        expect(found, FindingKind::shared_race);
        CHECK(found->message.find("PTX line 42) read it") != std::string::npos);
    }
    SUBCASE("the next barrier makes it too old for any finding")
    {
        b.barrier(true);
        CHECK_FALSE(b.write(warp2, 256, 128));
        b.barrier(true);
        CHECK(b.read_early(warp0, 256));
    }
}

TEST_CASE("asynchronous work that began before a barrier does not know reads before it")
{
    Bench b;
    CHECK_FALSE(b.write(warp0, 0, 256));
    b.barrier(true);
    const Agent async = b.clocks.begin_async(warp0);
    CHECK(b.read_early(warp1, 0));
    SUBCASE("it is in flight")
    {
        b.barrier(true);
        expect(b.copy_in(async, 64, 4), FindingKind::shared_race);
    }
    SUBCASE("it has written, and nobody knows")
    {
        CHECK_FALSE(b.copy_in(async, 128, 4));
        b.clocks.end_async(async);
        b.barrier(true);
        CHECK_FALSE(b.read_early(warp1, 128));
        expect(b.read(warp1, 128), FindingKind::async_read_pending);
        CHECK(b.read_early(warp1, 0));
    }
    SUBCASE("it has written, and a warp has waited for it before the barrier")
    {
        CHECK_FALSE(b.copy_in(async, 128, 4));
        SyncPoint done;
        b.clocks.complete_async(async, done);
        b.clocks.end_async(async);
        b.clocks.acquire(warp0, done);
        b.barrier(true);
        CHECK(b.read_early(warp1, 128));
    }
}

}  // namespace tessera::emulator
