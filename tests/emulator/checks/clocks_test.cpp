#include "checks/clocks.hpp"

#include <doctest/doctest.h>

#include <vector>

namespace tessera::emulator {

TEST_CASE("an agent knows its own past and nothing of other agents")
{
    const Clocks clocks(3);
    CHECK(clocks.ordered(clocks.now(1), 1));
    CHECK_FALSE(clocks.ordered(clocks.now(1), 2));
    CHECK(clocks.ordered(Epoch{}, 2));  // never happened
}

TEST_CASE("a barrier passes on what happened before it, not what happens after")
{
    Clocks clocks(3);
    SyncPoint barrier;
    const Epoch before = clocks.now(0);
    clocks.release(0, barrier);
    const Epoch after = clocks.now(0);
    clocks.acquire(1, barrier);
    CHECK(clocks.ordered(before, 1));
    CHECK_FALSE(clocks.ordered(after, 1));
    CHECK_FALSE(clocks.ordered(before, 2));
}

TEST_CASE("order is transitive")
{
    Clocks clocks(3);
    SyncPoint first, second;
    const Epoch written = clocks.now(0);
    clocks.release(0, first);
    clocks.acquire(1, first);
    clocks.release(1, second);
    clocks.acquire(2, second);
    CHECK(clocks.ordered(written, 2));
}

TEST_CASE("points of several barriers can be joined")
{
    Clocks clocks(40);
    SyncPoint low, high, both;
    const Epoch a = clocks.now(2), b = clocks.now(37);
    clocks.release(2, low);
    clocks.release(37, high);
    both.join(low);
    both.join(high);
    clocks.acquire(20, both);
    CHECK(clocks.ordered(a, 20));
    CHECK(clocks.ordered(b, 20));
    both.clear();
    clocks.acquire(21, both);
    CHECK_FALSE(clocks.ordered(a, 21));
}

TEST_CASE("an asynchronous operation sees what its issuer has seen, and its waiters see the operation")
{
    Clocks clocks(2);
    const Epoch prepared = clocks.now(0);
    const Agent copy = clocks.begin_async(0);
    CHECK(clocks.is_async(copy));
    CHECK_FALSE(clocks.is_async(1));
    const Epoch later = clocks.now(0);
    CHECK(clocks.ordered(prepared, copy));
    CHECK_FALSE(clocks.ordered(later, copy));  // issued before
    const Epoch written = clocks.now(copy);
    CHECK_FALSE(clocks.ordered(written, 0));  // the issuer must wait, too
    SyncPoint barrier, peer;
    clocks.complete_async(copy, barrier);
    clocks.complete_async(copy, peer);
    clocks.end_async(copy);
    clocks.acquire(1, peer);
    CHECK(clocks.ordered(written, 1));
    CHECK(clocks.ordered(prepared, 1));
    CHECK_FALSE(clocks.ordered(written, 0));
    clocks.acquire(0, barrier);
    CHECK(clocks.ordered(written, 0));
}

TEST_CASE("operations that share a number are not confused")
{
    Clocks clocks(2);
    const Agent first = clocks.begin_async(0);
    const Epoch written = clocks.now(first);
    clocks.end_async(first);  // nothing waits for it
    Agent other = 0;
    unsigned operations = 0;
    for (; operations < 1000 && other != first; ++operations) {
        other = clocks.begin_async(1);
        clocks.end_async(other);
    }
    REQUIRE(other == first);
    CHECK(operations > 32);  // numbers are not reused at once
    CHECK_FALSE(clocks.ordered(written, 1));
    const Agent reused = [&] {
        for (;;) {
            const Agent agent = clocks.begin_async(1);
            if (agent == first) {
                return agent;
            }
            clocks.end_async(agent);
        }
    }();
    CHECK_FALSE(clocks.ordered(written, reused));
    CHECK(clocks.ordered(clocks.now(reused), reused));
}

TEST_CASE("hundreds of operations can be in flight")
{
    Clocks clocks(64);
    SyncPoint barrier;
    std::vector<Agent> flying;
    std::vector<Epoch> epochs;
    for (unsigned i = 0; i < 700; ++i) {
        flying.push_back(clocks.begin_async(static_cast<Agent>(i % 64)));
        epochs.push_back(clocks.now(flying.back()));
    }
    for (const Agent agent : flying) {
        clocks.complete_async(agent, barrier);
        clocks.end_async(agent);
    }
    clocks.acquire(63, barrier);
    for (const Epoch epoch : epochs) {
        CHECK(clocks.ordered(epoch, 63));
        CHECK_FALSE(clocks.ordered(epoch, 62));
    }
}

TEST_CASE("fence.proxy.async counts for the lanes that executed it after their write, once it is known")
{
    Clocks clocks(3);
    SyncPoint barrier;
    const Epoch written = clocks.now(0);
    SUBCASE("no fence")
    {
        clocks.release(0, barrier);
        clocks.acquire(1, barrier);
        CHECK(clocks.ordered(written, 1));
        CHECK_FALSE(clocks.ordered_for_async(written, clocks.begin_async(1), 5));
    }
    SUBCASE("by the writing lane")
    {
        clocks.proxy_fence(0, 1u << 5);
        clocks.release(0, barrier);
        clocks.acquire(1, barrier);
        const Agent copy = clocks.begin_async(1);
        CHECK(clocks.ordered_for_async(written, copy, 5));
        CHECK_FALSE(clocks.ordered_for_async(written, copy, 6));
        CHECK(clocks.ordered_for_async(written, copy, Clocks::any_lane));
        CHECK_FALSE(clocks.ordered_for_async(written, clocks.begin_async(2), 5));  // did not synchronize
    }
    SUBCASE("by two lanes at different times")
    {
        clocks.proxy_fence(0, 1u << 5);
        clocks.proxy_fence(0, 1u << 6);
        const Agent copy = clocks.begin_async(0);
        CHECK(clocks.ordered_for_async(written, copy, 5));
        CHECK(clocks.ordered_for_async(written, copy, 6));
    }
    SUBCASE("only by the issuer of the copy")
    {
        clocks.release(0, barrier);
        clocks.acquire(1, barrier);
        clocks.proxy_fence(1, all_lanes);
        CHECK_FALSE(clocks.ordered_for_async(written, clocks.begin_async(1), 5));
    }
    SUBCASE("by the issuer of an operation that trusts it: only what was known at the fence")
    {
        clocks.release(0, barrier);
        clocks.acquire(1, barrier);
        Agent multiply = clocks.begin_async(1);
        clocks.trust_issuers_fence(multiply, 1);
        CHECK_FALSE(clocks.ordered_for_async(written, multiply, 5));  // no fence yet
        clocks.proxy_fence(1, 1u << 5);
        multiply = clocks.begin_async(1);
        clocks.trust_issuers_fence(multiply, 1);
        CHECK_FALSE(clocks.ordered_for_async(written, multiply, 5));  // not by the whole warp
        clocks.proxy_fence(1, all_lanes);
        const Epoch later = clocks.now(0);
        clocks.release(0, barrier);
        clocks.acquire(1, barrier);
        multiply = clocks.begin_async(1);
        clocks.trust_issuers_fence(multiply, 1);
        CHECK(clocks.ordered_for_async(written, multiply, 5));
        CHECK(clocks.ordered(later, multiply));
        CHECK_FALSE(clocks.ordered_for_async(later, multiply, 5));
    }
    SUBCASE("after the synchronization: the other side does not know it")
    {
        clocks.release(0, barrier);
        clocks.proxy_fence(0, all_lanes);
        clocks.acquire(1, barrier);
        CHECK_FALSE(clocks.ordered_for_async(written, clocks.begin_async(1), 5));
        CHECK(clocks.ordered_for_async(written, clocks.begin_async(0), 5));
    }
    SUBCASE("before the write")
    {
        clocks.proxy_fence(0, all_lanes);
        const Epoch again = clocks.now(0);
        CHECK(clocks.ordered_for_async(written, clocks.begin_async(0), 0));
        CHECK_FALSE(clocks.ordered_for_async(again, clocks.begin_async(0), 0));
    }
}

TEST_CASE("fences in a long loop are forgotten safely")
{
    Clocks clocks(1);
    for (unsigned i = 0; i < 10'000; ++i) {
        const Epoch written = clocks.now(0);
        REQUIRE_FALSE(clocks.ordered_for_async(written, 0, 3));
        clocks.proxy_fence(0, 1u << (i % 3));
        REQUIRE_FALSE(clocks.ordered_for_async(written, 0, 3));
        clocks.proxy_fence(0, 1u << 3);
        REQUIRE(clocks.ordered_for_async(written, 0, 3));
    }
}

TEST_CASE("every address has a memory point, shared with its neighbours and rarely with other addresses")
{
    Clocks clocks(1);
    const auto shared = [&](std::uint64_t i) { return &clocks.memory_point(0x00E0'0000'0000'0400 + i); };
    const auto global = [&](std::uint64_t i) { return &clocks.memory_point(0x7F00'0000'0000 + i); };
    unsigned same = 0;
    for (std::uint64_t i = 0; i < 64; ++i) {
        same += shared(8 * i) == shared(8 * (i + 1));
        same += global(128 * i) == global(128 * (i + 1));
        CHECK(shared(8 * i) == shared(8 * i + 7));
        CHECK(global(128 * i) == global(128 * i + 127));
    }
    CHECK(same < 8);
}

}  // namespace tessera::emulator
