#include "machine/mbarrier.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace tessera::emulator {

std::string Mbarrier::initialize(std::int64_t count)
{
    phase = 0;
    transactions = 0;
    expected = pending = std::clamp<std::int64_t>(count, 1, mbarrier_limit);
    arriving.clear();
    arriving_near.clear();
    completed.clear();
    completed_near.clear();
    copies_missed = 0;
    arrivals_total = 0;
    last_arrival.clear();
    return expected == count ? std::string{}
                             : fmt::format("the count of an mbarrier is {}; it must be 1 to {}", count, mbarrier_limit);
}

std::string Mbarrier::arrive(std::int64_t count)
{
    std::string problem;
    if (count < 0 || count > pending) {
        problem = fmt::format(
            "{} arrivals, but only {} of {} are pending in phase {}: more threads arrive than the barrier was "
            "initialized for",
            count, pending, expected, phase);
        count = std::clamp<std::int64_t>(count, 0, pending);
    }
    pending -= count;
    arrivals_total += static_cast<std::uint64_t>(count);
    complete_if_due();
    return problem;
}

std::string Mbarrier::drop(std::int64_t count)
{
    std::string problem;
    if (count > expected) {
        problem = fmt::format("{} arrivals are dropped, but only {} are expected per phase", count, expected);
    }
    expected = std::max<std::int64_t>(expected - count, 0);
    const std::string arrival = arrive(count);
    return problem.empty() ? arrival : problem;
}

std::string Mbarrier::add_pending(std::int64_t count)
{
    if (pending + count > mbarrier_limit) {
        return fmt::format("{} arrivals would be pending; the maximum is {}", pending + count, mbarrier_limit);
    }
    pending += count;
    return {};
}

std::string Mbarrier::add_transactions(std::int64_t bytes)
{
    const std::int64_t sum = transactions + bytes;
    transactions = std::clamp(sum, -mbarrier_limit, mbarrier_limit);
    complete_if_due();
    if (sum > mbarrier_limit || sum < -mbarrier_limit) {
        return fmt::format("{} bytes of transactions are outstanding in one phase; a barrier counts up to {}", sum,
                           mbarrier_limit);
    }
    return {};
}

void Mbarrier::complete_if_due()
{
    if (pending != 0 || transactions != 0) {
        return;
    }
    ++phase;
    pending = expected;
    completed.join(arriving);
    completed.join(arriving_near);
    completed_near.join(arriving_near);
    arriving.clear();
    arriving_near.clear();
    copies_missed = copies;
}

std::uint32_t Mbarrier::take_copies_missed() noexcept { return std::exchange(copies_missed, 0); }

std::string Mbarrier::describe() const
{
    return fmt::format("phase {} (parity {}): {} of {} arrivals pending, {} bytes of transactions outstanding", phase,
                       phase & 1U, pending, expected, transactions);
}

}  // namespace tessera::emulator
