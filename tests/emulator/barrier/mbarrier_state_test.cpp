// The state of an mbarrier by itself: phases, counts, transactions (PTX ISA "Contents of the mbarrier object",
// "Lifecycle").

#include <doctest/doctest.h>

#include "machine/mbarrier.hpp"

using namespace tessera::emulator;

TEST_CASE("a phase completes with its last arrival, and the next begins with the same count")
{
    Mbarrier barrier;
    CHECK(barrier.initialize(3).empty());
    CHECK(barrier.parity_completed(1));  // as if there were a completed phase before the first one
    CHECK_FALSE(barrier.parity_completed(0));
    CHECK(barrier.arrive(2).empty());
    CHECK(barrier.phase == 0);
    CHECK(barrier.pending == 1);
    CHECK(barrier.arrive(1).empty());
    CHECK(barrier.phase == 1);
    CHECK(barrier.pending == 3);
    CHECK(barrier.parity_completed(0));
    CHECK_FALSE(barrier.parity_completed(1));
    CHECK(barrier.arrive(3).empty());
    CHECK(barrier.phase == 2);
    CHECK(barrier.parity_completed(1));
}

TEST_CASE("transactions hold a phase open, whichever comes first")
{
    Mbarrier barrier;
    static_cast<void>(barrier.initialize(1));
    CHECK(barrier.add_transactions(100).empty());
    CHECK(barrier.arrive(1).empty());
    CHECK(barrier.phase == 0);
    CHECK(barrier.add_transactions(-60).empty());
    CHECK(barrier.phase == 0);
    CHECK(barrier.add_transactions(-40).empty());
    CHECK(barrier.phase == 1);
    // complete-tx before expect-tx, while an arrival is outstanding
    CHECK(barrier.add_transactions(-16).empty());
    CHECK(barrier.phase == 1);
    CHECK(barrier.transactions == -16);
    CHECK(barrier.add_transactions(16).empty());
    CHECK(barrier.phase == 1);
    CHECK(barrier.arrive(1).empty());
    CHECK(barrier.phase == 2);
}

TEST_CASE("arrive_drop lowers the count of all later phases")
{
    Mbarrier barrier;
    static_cast<void>(barrier.initialize(3));
    CHECK(barrier.drop(1).empty());
    CHECK(barrier.pending == 2);
    CHECK(barrier.expected == 2);
    CHECK(barrier.arrive(2).empty());
    CHECK(barrier.phase == 1);
    CHECK(barrier.pending == 2);
    CHECK_FALSE(barrier.drop(3).empty());
}

TEST_CASE("counts out of range are reported")
{
    Mbarrier barrier;
    CHECK_FALSE(barrier.initialize(0).empty());
    CHECK_FALSE(barrier.initialize(1 << 20).empty());
    CHECK(barrier.initialize((1 << 20) - 1).empty());
    CHECK(barrier.initialize(2).empty());
    CHECK_FALSE(barrier.arrive(3).empty());
    CHECK(barrier.initialize(2).empty());
    CHECK(barrier.add_transactions((1 << 20) - 1).empty());
    CHECK_FALSE(barrier.add_transactions(1).empty());
    CHECK(barrier.initialize((1 << 20) - 1).empty());
    CHECK_FALSE(barrier.add_pending(1).empty());
}

TEST_CASE("a phase that completes while a copy is in flight is reported once")
{
    Mbarrier barrier;
    static_cast<void>(barrier.initialize(1));
    barrier.copies = 2;
    CHECK(barrier.take_copies_missed() == 0);
    CHECK(barrier.arrive(1).empty());
    CHECK(barrier.take_copies_missed() == 2);
    CHECK(barrier.take_copies_missed() == 0);
}
