#pragma once

// Groups of asynchronous copies, as threads commit and wait for them (PTX ISA "cp.async.commit_group",
// "cp.async.bulk.commit_group").

#include <array>
#include <cstdint>
#include <deque>
#include <vector>

#include "checks/clocks.hpp"
#include "machine/lanes.hpp"

namespace tessera::emulator {

/// The copies of one kind (cp.async, or bulk copies that complete by groups) of a warp's threads. Groups are a matter
/// of each thread.
class CopyGroups {
public:
    /// Numbers the copies of a warp in the order of issue, from 1.
    using Sequence = std::uint64_t;

    enum class Stage : std::uint8_t { source_read, complete };

    /// Each of `lanes` issues a copy; it belongs to the group that the lane commits next.
    [[nodiscard]] Sequence add(LaneMask lanes);
    /// The copies with this number have come to `stage`. What they did is to be passed to the point returned.
    SyncPoint& reached(Sequence sequence, Stage stage);
    void commit(LaneMask lanes);

    /// Have all groups of each of `lanes`, but for its `keep` latest, come to `stage`?
    [[nodiscard]] bool have_reached(LaneMask lanes, std::uint64_t keep, Stage stage) const noexcept;
    /// Have all copies of `lanes` issued so far, committed or not, come to `stage`?
    [[nodiscard]] bool all_reached(LaneMask lanes, Stage stage) const noexcept
    {
        return reached_before(lanes, next_, stage);
    }
    /// Have the copies of `lanes` with numbers below `end` come to `stage`?
    [[nodiscard]] bool reached_before(LaneMask lanes, Sequence end, Stage stage) const noexcept;
    /// The number that the next copy gets.
    [[nodiscard]] Sequence next() const noexcept { return next_; }

    /// What a wait for have_reached() passes to the waiting warp: `agent` sees what these copies did.
    void acquire(LaneMask lanes, std::uint64_t keep, Stage stage, Clocks& clocks, Agent agent);
    /// The same for a wait for all copies so far. Commits.
    void acquire_all(LaneMask lanes, Clocks& clocks, Agent agent);

    /// `agent` sees what the complete copies of `lanes` with numbers below `end` did that nobody has waited for.
    void pass(LaneMask lanes, Sequence end, Clocks& clocks, Agent agent) const;
    /// Changes with each wait for complete copies.
    [[nodiscard]] std::uint64_t waits() const noexcept { return waits_; }

    /// Copies of `lanes` that are not complete, for reports.
    [[nodiscard]] std::size_t outstanding(LaneMask lanes) const noexcept;

private:
    struct Record {
        Sequence sequence = 0;
        LaneMask lanes = 0;   // that issued them and have not waited for them
        LaneMask unread = 0;  // of these, those that have not even waited for the source to be read
        bool read = false, complete = false;
        SyncPoint read_point, complete_point;

        [[nodiscard]] bool has_reached(Stage stage) const noexcept
        {
            return stage == Stage::complete ? complete : read;
        }
    };
    [[nodiscard]] Sequence boundary(unsigned lane, std::uint64_t keep) const noexcept;
    void acquire_before(unsigned lane, Sequence end, Stage stage, Clocks& clocks, Agent agent);
    /// May a wait be for `earlier` and not for `later`, the next one?
    [[nodiscard]] bool told_apart(const Record& earlier, const Record& later) const noexcept;
    void forget();

    Sequence next_ = 1;
    std::size_t record_limit_ = 512;  // with so many, add() calls forget()
    std::uint64_t waits_ = 0;
    std::deque<Record> records_;                           // by number
    std::array<std::vector<Sequence>, warp_size> groups_;  // per lane: one past the last copy of each committed group
};

}  // namespace tessera::emulator
