#include "machine/async_groups.hpp"

#include <algorithm>
#include <bit>

namespace tessera::emulator {

namespace {

// A program that never waits for its groups (it may wait on an mbarrier instead) must not make them pile up.
constexpr std::size_t remembered_records = 256;
constexpr std::size_t remembered_groups = 64;

}  // namespace

CopyGroups::Sequence CopyGroups::add(LaneMask lanes)
{
    if (records_.size() >= remembered_records) {
        forget();
    }
    Record record;
    record.sequence = next_;
    record.lanes = record.unread = lanes;
    records_.push_back(std::move(record));
    return next_++;
}

void CopyGroups::forget()
{
    // The oldest copies that are over become one: whoever waits for one of them then sees what all of them did.
    while (records_.size() >= 2 && records_[0].complete && records_[1].complete) {
        records_[1].lanes |= records_[0].lanes;
        records_[1].unread |= records_[0].unread;
        records_[1].read_point.join(records_[0].read_point);
        records_[1].complete_point.join(records_[0].complete_point);
        records_.pop_front();
    }
}

SyncPoint& CopyGroups::reached(Sequence sequence, Stage stage)
{
    const auto record = std::ranges::lower_bound(records_, sequence, {}, [](const Record& r) { return r.sequence; });
    record->read = true;
    if (stage == Stage::source_read) {
        return record->read_point;
    }
    record->complete = true;
    return record->complete_point;
}

void CopyGroups::commit(LaneMask lanes)
{
    for_each_lane(lanes, [&](unsigned lane) {
        std::vector<Sequence>& groups = groups_[lane];
        if (groups.size() >= remembered_groups) {
            // groups whose copies are over need no boundary of their own
            const auto busy = std::ranges::find_if(
                groups, [&](Sequence end) { return !reached_before(LaneMask{1} << lane, end, Stage::complete); });
            groups.erase(groups.begin(), busy);
        }
        groups.push_back(next_);
    });
}

CopyGroups::Sequence CopyGroups::boundary(unsigned lane, std::uint64_t keep) const noexcept
{
    const std::vector<Sequence>& groups = groups_[lane];
    return groups.size() > keep ? groups[groups.size() - 1 - keep] : 0;
}

bool CopyGroups::reached_before(LaneMask lanes, Sequence end, Stage stage) const noexcept
{
    for (const Record& record : records_) {
        if (record.sequence >= end) {
            break;
        }
        if ((record.lanes & lanes) != 0 && !record.has_reached(stage)) {
            return false;
        }
    }
    return true;
}

bool CopyGroups::have_reached(LaneMask lanes, std::uint64_t keep, Stage stage) const noexcept
{
    for (LaneMask rest = lanes; rest != 0;) {
        // lanes that go in step have the same boundary: look at the copies once for all of them
        const Sequence end = boundary(static_cast<unsigned>(std::countr_zero(rest)), keep);
        LaneMask same = 0;
        for_each_lane(rest, [&](unsigned lane) { same |= boundary(lane, keep) == end ? LaneMask{1} << lane : 0; });
        if (!reached_before(same, end, stage)) {
            return false;
        }
        rest &= ~same;
    }
    return true;
}

void CopyGroups::acquire_before(unsigned lane, Sequence end, Stage stage, Clocks& clocks, Agent agent)
{
    const LaneMask bit = LaneMask{1} << lane;
    for (Record& record : records_) {
        if (record.sequence >= end) {
            break;
        }
        if (stage == Stage::complete && (record.lanes & bit) != 0) {
            clocks.acquire(agent, record.complete_point);
            record.lanes &= ~bit;
        } else if ((record.unread & bit) != 0) {
            clocks.acquire(agent, record.read_point);
        }
        record.unread &= ~bit;
    }
    while (!records_.empty() && records_.front().lanes == 0 && records_.front().complete) {
        records_.pop_front();
    }
}

void CopyGroups::pass(LaneMask lanes, Sequence end, Clocks& clocks, Agent agent) const
{
    for (const Record& record : records_) {
        if (record.sequence < end && record.complete && (record.lanes & lanes) != 0) {
            clocks.acquire(agent, record.complete_point);
        }
    }
}

void CopyGroups::acquire(LaneMask lanes, std::uint64_t keep, Stage stage, Clocks& clocks, Agent agent)
{
    ++waits_;
    for_each_lane(lanes, [&](unsigned lane) {
        const Sequence end = boundary(lane, keep);
        if (end == 0) {
            return;
        }
        acquire_before(lane, end, stage, clocks, agent);
        if (stage == Stage::complete) {
            std::vector<Sequence>& groups = groups_[lane];
            groups.erase(groups.begin(), groups.end() - static_cast<std::ptrdiff_t>(keep));
        }
    });
}

void CopyGroups::acquire_all(LaneMask lanes, Clocks& clocks, Agent agent)
{
    ++waits_;
    for_each_lane(lanes, [&](unsigned lane) {
        acquire_before(lane, next_, Stage::complete, clocks, agent);
        groups_[lane].clear();
    });
}

std::size_t CopyGroups::outstanding(LaneMask lanes) const noexcept
{
    return static_cast<std::size_t>(std::ranges::count_if(
        records_, [&](const Record& record) { return (record.lanes & lanes) != 0 && !record.complete; }));
}

}  // namespace tessera::emulator
