// Groups of asynchronous copies: which copies a wait for all but the latest N groups waits for.

#include <doctest/doctest.h>

#include <algorithm>
#include <deque>
#include <vector>

#include "checks/clocks.hpp"
#include "machine/async_groups.hpp"

using namespace tessera::emulator;
using Stage = CopyGroups::Stage;

TEST_CASE("wait_group N waits for all but the latest N groups of the lane")
{
    CopyGroups groups;
    const LaneMask lane = 1;
    const auto first = groups.add(lane);
    groups.commit(lane);
    const auto second = groups.add(lane);
    const auto third = groups.add(lane);
    groups.commit(lane);
    CHECK(groups.have_reached(lane, 2, Stage::complete));
    CHECK_FALSE(groups.have_reached(lane, 1, Stage::complete));
    groups.reached(first, Stage::complete);
    CHECK(groups.have_reached(lane, 1, Stage::complete));
    CHECK_FALSE(groups.have_reached(lane, 0, Stage::complete));
    groups.reached(third, Stage::complete);
    CHECK_FALSE(groups.have_reached(lane, 0, Stage::complete));
    CHECK(groups.outstanding(lane) == 1);
    groups.reached(second, Stage::complete);
    CHECK(groups.have_reached(lane, 0, Stage::complete));
}

TEST_CASE("uncommitted copies belong to no group, but count among all copies")
{
    CopyGroups groups;
    const auto copy = groups.add(0b11);
    CHECK(groups.have_reached(0b11, 0, Stage::complete));
    CHECK_FALSE(groups.all_reached(0b11, Stage::complete));
    CHECK(groups.all_reached(0b100, Stage::complete));
    groups.reached(copy, Stage::complete);
    CHECK(groups.all_reached(0b11, Stage::complete));
}

TEST_CASE("empty groups count as groups")
{
    CopyGroups groups;
    const auto copy = groups.add(1);
    groups.commit(1);
    groups.commit(1);
    groups.commit(1);
    CHECK_FALSE(groups.have_reached(1, 2, Stage::complete));
    CHECK(groups.have_reached(1, 3, Stage::complete));
    groups.reached(copy, Stage::complete);
    CHECK(groups.have_reached(1, 0, Stage::complete));
}

TEST_CASE("lanes that committed together have groups of their own once some of them commit or wait alone")
{
    for (const bool waits : {false, true}) {
        CAPTURE(waits);
        CopyGroups groups;
        Clocks clocks(1);
        constexpr LaneMask all = 0b1111, some = 0b0011, others = 0b1100;
        const auto first = groups.add(all);
        groups.commit(all);
        const auto second = groups.add(all);
        groups.commit(all);
        groups.reached(first, Stage::complete);
        CHECK(groups.have_reached(all, 1, Stage::complete));
        CHECK_FALSE(groups.have_reached(some, 0, Stage::complete));
        if (waits) {
            groups.acquire(some, 1, Stage::complete, clocks, 0, all);
        } else {
            groups.commit(some);
        }
        CHECK(groups.have_reached(some, 1, Stage::complete) == waits);
        CHECK_FALSE(groups.have_reached(some, 0, Stage::complete));
        CHECK(groups.have_reached(others, 1, Stage::complete));
        CHECK_FALSE(groups.have_reached(all, 0, Stage::complete));
        groups.reached(second, Stage::complete);
        CHECK(groups.have_reached(all, 0, Stage::complete));
    }
}

TEST_CASE("each lane has its own groups")
{
    CopyGroups groups;
    const auto both = groups.add(0b11);
    groups.commit(0b01);
    const auto upper = groups.add(0b10);
    groups.commit(0b10);
    groups.reached(both, Stage::complete);
    CHECK(groups.have_reached(0b01, 0, Stage::complete));
    CHECK_FALSE(groups.have_reached(0b10, 0, Stage::complete));
    CHECK_FALSE(groups.have_reached(0b11, 0, Stage::complete));
    groups.reached(upper, Stage::complete);
    CHECK(groups.have_reached(0b11, 0, Stage::complete));
}

TEST_CASE("the source is read before the copy is complete")
{
    CopyGroups groups;
    const auto copy = groups.add(1);
    groups.commit(1);
    groups.reached(copy, Stage::source_read);
    CHECK(groups.have_reached(1, 0, Stage::source_read));
    CHECK_FALSE(groups.have_reached(1, 0, Stage::complete));
    groups.reached(copy, Stage::complete);
    CHECK(groups.have_reached(1, 0, Stage::complete));
}

TEST_CASE("a wait shows the effects of the awaited copies, and of no others")
{
    Clocks clocks(2);
    CopyGroups groups;
    const Agent early = clocks.begin_async(0);
    const auto first = groups.add(1);
    groups.commit(1);
    const Agent late = clocks.begin_async(0);
    const auto second = groups.add(1);
    groups.commit(1);
    const Epoch early_write = clocks.now(early);
    const Epoch late_write = clocks.now(late);
    clocks.complete_async(early, groups.reached(first, Stage::complete));
    clocks.complete_async(late, groups.reached(second, Stage::complete));
    CHECK_FALSE(clocks.ordered(early_write, 0));
    groups.acquire(1, 1, Stage::complete, clocks, 0);
    CHECK(clocks.ordered(early_write, 0));
    CHECK_FALSE(clocks.ordered(late_write, 0));
    groups.acquire(1, 0, Stage::complete, clocks, 0);
    CHECK(clocks.ordered(late_write, 0));
}

TEST_CASE("without waits, groups do not pile up, and no open group is lost")
{
    CopyGroups groups;
    CopyGroups::Sequence open = groups.add(1);
    groups.commit(1);
    for (unsigned i = 0; i < 5000; ++i) {
        const auto copy = groups.add(1);
        groups.commit(1);
        groups.reached(copy, Stage::complete);
    }
    CHECK_FALSE(groups.have_reached(1, 5000, Stage::complete));
    CHECK(groups.have_reached(1, 5001, Stage::complete));
    groups.reached(open, Stage::complete);
    CHECK(groups.have_reached(1, 0, Stage::complete));
}

TEST_CASE("a wait for all but the latest groups sees the sources read, however many groups precede")
{
    // As in an epilogue with several buffers. No copy is ever waited for to its end, so all are remembered until there
    // are too many.
    struct Case {
        std::size_t copies, keep;  // of each group, by each wait
    };
    for (const auto& [copies, keep] : {Case{1, 1}, Case{3, 1}, Case{400, 2}}) {
        CAPTURE(copies);
        Clocks clocks(1);
        CopyGroups groups;
        std::deque<std::vector<Epoch>> reads;  // of the latest groups
        for (unsigned group = 0; group < 600; ++group) {
            CAPTURE(group);
            std::vector<CopyGroups::Sequence> issued;
            for (std::size_t i = 0; i < copies; ++i) {
                issued.push_back(groups.add(1));
            }
            groups.commit(1);
            reads.emplace_back();
            for (const CopyGroups::Sequence copy : issued) {
                const Agent async = clocks.begin_async(0);
                reads.back().push_back(clocks.now(async));
                clocks.complete_async(async, groups.reached(copy, Stage::source_read));
                clocks.complete_async(async, groups.reached(copy, Stage::complete));
                clocks.end_async(async);
            }
            groups.acquire(1, keep, Stage::source_read, clocks, 0);
            const auto seen = [&](const Epoch& read) { return clocks.ordered(read, 0); };
            while (reads.size() > keep) {
                REQUIRE(std::ranges::all_of(reads.front(), seen));
                reads.pop_front();
            }
            REQUIRE(std::ranges::none_of(reads.back(), seen));
        }
    }
}
