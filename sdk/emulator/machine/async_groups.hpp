#pragma once

// Groups of asynchronous copies that threads commit and wait for (PTX ISA "cp.async.commit_group",
// "cp.async.bulk.commit_group").

#include <array>
#include <cstdint>
#include <vector>

#include "base/lanes.hpp"
#include "checks/clocks.hpp"

namespace tessera::emulator {

/// The copies of one kind (cp.async, or bulk copies that complete by groups) of a warp's threads. Each thread has its
/// own groups.
class CopyGroups {
public:
    /// Numbers the copies of a warp in the order of issue, from 1.
    using Sequence = std::uint64_t;

    enum class Stage : std::uint8_t { source_read, complete };

    /// Each of `lanes` issues a copy. It belongs to the group that the lane commits next.
    [[nodiscard]] Sequence add(LaneMask lanes);
    /// The copies with this number have reached `stage`. The caller passes what they did to the returned point.
    /// `copy` is the agent that made them.
    SyncPoint& reached(Sequence sequence, Stage stage, Agent copy = 0);
    void commit(LaneMask lanes);

    /// Returns true if all groups of each of `lanes`, except its `keep` latest, have reached `stage`.
    [[nodiscard]] bool have_reached(LaneMask lanes, std::uint64_t keep, Stage stage) const noexcept;
    /// Returns true if all copies of `lanes` issued so far, committed or not, have reached `stage`.
    [[nodiscard]] bool all_reached(LaneMask lanes, Stage stage) const noexcept
    {
        return reached_before(lanes, next_, stage);
    }
    /// Returns true if the copies of `lanes` with numbers below `end` have reached `stage`.
    [[nodiscard]] bool reached_before(LaneMask lanes, Sequence end, Stage stage) const noexcept;
    /// The number of the next copy.
    [[nodiscard]] Sequence next() const noexcept { return next_; }

    /// After a successful have_reached(): `agent` sees what these copies did, each lane of `live` what its own did.
    void acquire(LaneMask lanes, std::uint64_t keep, Stage stage, Clocks& clocks, Agent agent,
                 LaneMask live = all_lanes);
    /// The same after a wait for all copies so far. Commits.
    void acquire_all(LaneMask lanes, Clocks& clocks, Agent agent, LaneMask live = all_lanes);

    /// `agent` sees what the completed copies of `lanes` with numbers below `end` did, if not waited for yet.
    void pass(LaneMask lanes, Sequence end, Clocks& clocks, Agent agent) const;
    /// Changes with each wait for completed copies.
    [[nodiscard]] std::uint64_t waits() const noexcept { return waits_; }

    /// Returns true if one of `lanes` has issued copies and has not waited until they were complete.
    [[nodiscard]] bool unwaited(LaneMask lanes) const noexcept;
    /// Number of incomplete copies of `lanes`, for reports.
    [[nodiscard]] std::size_t outstanding(LaneMask lanes) const noexcept;

private:
    struct Record {
        Sequence sequence = 0;
        LaneMask issued = 0;  // lanes that issued them
        LaneMask lanes = 0;   // of these, lanes that have not waited for them
        LaneMask unread = 0;  // of these, lanes that have not waited for the source to be read
        Agent copy = 0;       // 0: several agents
        bool read = false, complete = false;
        SyncPoint read_point, complete_point;

        [[nodiscard]] bool has_reached(Stage stage) const noexcept
        {
            return stage == Stage::complete ? complete : read;
        }
    };
    /// One past the last copy of each committed group of a lane.
    using Groups = std::vector<Sequence>;
    [[nodiscard]] const Groups& groups_of(unsigned lane) const noexcept
    {
        return (alike_ >> lane & 1) != 0 ? groups_of_all_ : groups_[lane];
    }
    /// Calls body(groups) for the groups of `lanes`: once if all these have the same.
    template <typename Body>
    void change_groups(LaneMask lanes, Body&& body);
    [[nodiscard]] Sequence boundary(unsigned lane, std::uint64_t keep) const noexcept;
    /// Calls body(lanes, end) for the lanes with the same boundary: all of them at once if they run in lockstep. Stops when
    /// it returns false.
    template <typename Body>
    void for_each_boundary(LaneMask lanes, std::uint64_t keep, Body&& body) const;
    void acquire_before(LaneMask lanes, Sequence end, Stage stage, Clocks& clocks, Agent agent, LaneMask live);
    /// Returns true if a wait may be for `earlier` but not for `later`, the next one.
    [[nodiscard]] bool told_apart(const Record& earlier, const Record& later) const noexcept;
    void forget();

    Sequence next_ = 1;
    std::size_t record_limit_ = 512;  // at this size, add() calls forget()
    std::uint64_t waits_ = 0;
    std::vector<SyncPoint> spare_points_;  // of records that are gone, for their memory
    std::vector<Record> records_;          // by number
    bool has_committed_ = false;
    LaneMask alike_ = 0;                    // lanes that have committed and waited together so far
    Groups groups_of_all_;                  // of each of these
    std::array<Groups, warp_size> groups_;  // of the others
};

}  // namespace tessera::emulator
