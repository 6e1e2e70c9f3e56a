#include "machine/async_groups.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

namespace tessera::emulator {

namespace {

// A program may never wait for its groups (it may wait on an mbarrier instead), or only for their sources to be read.
// They must not pile up. So many groups of each lane, and so many copies of the warp, are distinguished; older ones
// only while they are not complete.
constexpr std::size_t remembered_groups = 64;
constexpr std::size_t remembered_records = 256;

}  // namespace

CopyGroups::Sequence CopyGroups::add(LaneMask lanes)
{
    if (records_.size() >= record_limit_) {
        forget();
    }
    Record record;
    record.sequence = next_;
    record.issued = record.lanes = record.unread = lanes;
    if (!spare_points_.empty()) {
        record.complete_point = std::move(spare_points_.back());
        spare_points_.pop_back();
    }
    records_.push_back(std::move(record));
    return next_++;
}

bool CopyGroups::told_apart(const Record& earlier, const Record& later) const noexcept
{
    bool found = false;
    for_each_lane(earlier.lanes, [&](unsigned lane) {
        const Groups& groups = groups_of(lane);
        const auto end = std::ranges::upper_bound(groups, earlier.sequence);
        found = found || (end != groups.end() && *end <= later.sequence);
    });
    return found;
}

void CopyGroups::forget()
{
    // Completed neighbours are merged: a wait for one of them then sees what both did. Merge only where no wait can be
    // for the earlier one alone.
    std::vector<Record> kept;
    for (Record& record : records_) {
        // While some lanes have waited for a copy and others have not, it is kept apart, if there are not too many.
        const bool partly = !kept.empty() && kept.back().lanes != kept.back().issued;
        const bool old = record.sequence + (partly ? 64 : 1) * remembered_records < next_;
        if (old && !kept.empty() && kept.back().complete && record.complete && !told_apart(kept.back(), record)) {
            record.issued |= kept.back().issued;
            record.lanes |= kept.back().lanes;
            record.copy = 0;
            record.unread |= kept.back().unread;
            record.read_point.join(kept.back().read_point);
            record.complete_point.join(kept.back().complete_point);
            kept.back() = std::move(record);
        } else {
            kept.push_back(std::move(record));
        }
    }
    records_ = std::move(kept);
    record_limit_ = 2 * std::max(records_.size(), remembered_records);
}

SyncPoint& CopyGroups::reached(Sequence sequence, Stage stage, Agent copy)
{
    const auto record = std::ranges::lower_bound(records_, sequence, {}, [](const Record& r) { return r.sequence; });
    record->read = true;
    record->copy = copy;
    if (stage == Stage::source_read) {
        return record->read_point;
    }
    record->complete = true;
    return record->complete_point;
}

template <typename Body>
void CopyGroups::change_groups(LaneMask lanes, Body&& body)
{
    if (lanes == alike_) {
        body(groups_of_all_, lanes);
        return;
    }
    for_each_lane(std::exchange(alike_, 0), [&](unsigned lane) { groups_[lane] = groups_of_all_; });
    for_each_lane(lanes, [&](unsigned lane) { body(groups_[lane], bit(lane)); });
}

void CopyGroups::commit(LaneMask lanes)
{
    if (!has_committed_) {
        has_committed_ = true;
        alike_ = lanes;
    }
    change_groups(lanes, [&](Groups& groups, LaneMask of) {
        // The oldest group needs no boundary once its copies are complete. A younger one does: a wait for all but the
        // latest N needs it to see what the copies before it did.
        while (groups.size() >= remembered_groups && reached_before(of, groups.front(), Stage::complete)) {
            groups.erase(groups.begin());
        }
        groups.push_back(next_);
    });
}

CopyGroups::Sequence CopyGroups::boundary(unsigned lane, std::uint64_t keep) const noexcept
{
    const Groups& groups = groups_of(lane);
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

template <typename Body>
void CopyGroups::for_each_boundary(LaneMask lanes, std::uint64_t keep, Body&& body) const
{
    if ((lanes & ~alike_) == 0 && lanes != 0) {
        body(lanes, boundary(static_cast<unsigned>(std::countr_zero(lanes)), keep));
        return;
    }
    std::array<Sequence, warp_size> ends{};
    for_each_lane(lanes, [&](unsigned lane) { ends[lane] = boundary(lane, keep); });
    for (LaneMask rest = lanes; rest != 0;) {
        const Sequence end = ends[static_cast<unsigned>(std::countr_zero(rest))];
        LaneMask same = 0;
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            same |= LaneMask{ends[lane] == end} << lane;
        }
        same &= rest;
        if (!body(same, end)) {
            return;
        }
        rest &= ~same;
    }
}

bool CopyGroups::have_reached(LaneMask lanes, std::uint64_t keep, Stage stage) const noexcept
{
    bool reached = true;
    for_each_boundary(lanes, keep,
                      [&](LaneMask same, Sequence end) { return reached = reached_before(same, end, stage); });
    return reached;
}

void CopyGroups::acquire_before(LaneMask lanes, Sequence end, Stage stage, Clocks& clocks, Agent agent, LaneMask live)
{
    for (Record& record : records_) {
        if (record.sequence >= end) {
            break;
        }
        if (const LaneMask some = record.lanes & lanes; stage == Stage::complete && some != 0) {
            if (record.copy != 0 && (record.issued & (record.issued - 1)) != 0) {
                clocks.acquire_own(agent, record.complete_point, record.copy, some, record.issued);
            } else {
                clocks.acquire(agent, record.complete_point, {some, live});
            }
            record.lanes &= ~lanes;
        } else if ((record.unread & lanes) != 0) {
            clocks.acquire(agent, record.read_point, {record.unread & lanes, live});
        }
        record.unread &= ~lanes;
    }
    const auto kept =
        std::ranges::find_if(records_, [](const Record& record) { return record.lanes != 0 || !record.complete; });
    std::for_each(records_.begin(), kept, [&](Record& record) {
        record.complete_point.clear();
        spare_points_.push_back(std::move(record.complete_point));
    });
    records_.erase(records_.begin(), kept);
}

void CopyGroups::pass(LaneMask lanes, Sequence end, Clocks& clocks, Agent agent) const
{
    for (const Record& record : records_) {
        if (record.sequence < end && record.complete && (record.lanes & lanes) != 0) {
            clocks.acquire(agent, record.complete_point);
        }
    }
}

void CopyGroups::acquire(LaneMask lanes, std::uint64_t keep, Stage stage, Clocks& clocks, Agent agent, LaneMask live)
{
    ++waits_;
    for_each_boundary(lanes, keep, [&](LaneMask same, Sequence end) {
        if (end != 0) {
            acquire_before(same, end, stage, clocks, agent, live);
        }
        if (end != 0 && stage == Stage::complete) {
            change_groups(same, [&](Groups& groups, LaneMask) {
                groups.erase(groups.begin(), groups.end() - static_cast<std::ptrdiff_t>(keep));
            });
        }
        return true;
    });
}

void CopyGroups::acquire_all(LaneMask lanes, Clocks& clocks, Agent agent, LaneMask live)
{
    ++waits_;
    acquire_before(lanes, next_, Stage::complete, clocks, agent, live);
    change_groups(lanes, [](Groups& groups, LaneMask) { groups.clear(); });
}

bool CopyGroups::unwaited(LaneMask lanes) const noexcept
{
    return std::ranges::any_of(records_, [&](const Record& record) { return (record.lanes & lanes) != 0; });
}

std::size_t CopyGroups::outstanding(LaneMask lanes) const noexcept
{
    return static_cast<std::size_t>(std::ranges::count_if(
        records_, [&](const Record& record) { return (record.lanes & lanes) != 0 && !record.complete; }));
}

}  // namespace tessera::emulator
