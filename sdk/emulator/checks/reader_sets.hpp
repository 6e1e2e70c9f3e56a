#pragma once

// Who has read a word since its last write.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "checks/access_mark.hpp"
#include "checks/clocks.hpp"

namespace tessera::emulator {

/// Number of a set of readers. 0 is nobody.
using Readers = std::uint32_t;

/// All sets of readers of a CTA's shared memory. A set is a list that shares its tail with the set that it extends, so
/// adding a reader is one entry and needs no allocation. Sets never change.
class ReaderSets {
public:
    explicit ReaderSets(const Clocks& clocks) : clocks_(clocks), entries_(1) {}

    /// What an agent that read before now knew at that time: all that came before an interval of Clocks, and its own
    /// accesses.
    struct Earlier {
        std::uint32_t releases = 0;                          ///< of Clocks
        const std::vector<std::uint32_t>* starts = nullptr;  ///< of the interval, by warp
    };

    /// The set with one more reader. Drops readers that happened before it: what is ordered after this reader is
    /// ordered after them, too. Plain reads are kept beside atomic ones, which conflict with less, until everybody knows
    /// them. If the read was `earlier`, asynchronous readers in the set are from before the interval.
    [[nodiscard]] Readers add(Readers readers, Mark reader, const Earlier* earlier = nullptr);
    [[nodiscard]] Readers single(Mark reader, const Earlier* earlier = nullptr)
    {
        return push(0, reader, stamp(earlier));
    }
    [[nodiscard]] bool is_single(Readers readers) const noexcept { return entries_[readers].before == 0; }
    /// True if the set is one reader, of the same agent at the same time in the same way.
    [[nodiscard]] bool is_like(Readers readers, Mark reader) const noexcept
    {
        return readers != 0 && is_single(readers) && alike(entries_[readers].mark, reader);
    }
    /// The first in time of the readers that `conflicts(mark)` is true for, or 0.
    template <typename Conflicts>
    [[nodiscard]] Mark first_conflict(Readers readers, Conflicts&& conflicts) const
    {
        Mark first = 0;
        for (; readers != 0; readers = entries_[readers].before) {
            const Mark mark = entries_[readers].mark;
            if ((first == 0 || mark < first) && conflicts(mark)) {
                first = mark;
            }
        }
        return first;
    }

    [[nodiscard]] bool should_collect() const noexcept { return entries_.size() > limit_; }
    /// Forgets the sets that are not used. `each_use(f)` calls f(Readers&) for every use; f may change the number.
    template <typename EachUse>
    void collect(EachUse&& each_use)
    {
        std::vector<Readers> renumbered(entries_.size(), 0);
        std::size_t uses = 0;
        each_use([&](Readers& use) {
            renumbered[use] = 1;
            ++uses;
        });
        renumber(renumbered);
        each_use([&](Readers& use) { use = renumbered[use]; });
        limit_ = std::max<std::size_t>(4096, 2 * entries_.size()) + uses / 4;  // so that walking the uses stays cheap
    }

private:
    struct Entry {
        Mark mark = 0;
        std::uint64_t agents = 0;  // a bit for agent % 64 of this and all earlier entries
        std::uint32_t stamp = 0;   // of Clocks when this entry was made: nobody who acquired less knows of it
        std::uint32_t oldest = 0;  // the smallest stamp of this and all earlier entries
        Readers before = 0;
    };
    static constexpr std::uint64_t agent_bit(Mark mark) noexcept
    {
        return std::uint64_t{1} << (epoch_of(mark).agent % 64);
    }
    [[nodiscard]] std::uint32_t stamp(const Earlier* earlier) const noexcept
    {
        return earlier != nullptr ? earlier->releases : clocks_.releases();
    }
    [[nodiscard]] bool knew(Agent agent, Epoch other, const Earlier* earlier) const noexcept
    {
        return earlier == nullptr ? clocks_.ordered(other, agent)
                                  : other.agent == agent || clocks_.is_async(other.agent) ||
                                        other.time < (*earlier->starts)[other.agent];
    }
    Readers push(Readers before, Mark mark, std::uint32_t stamp);
    Readers add_and_drop(Readers readers, Mark reader, const Earlier* earlier);
    void renumber(std::vector<Readers>& used);

    const Clocks& clocks_;
    std::vector<Entry> entries_;
    std::vector<Entry> kept_;
    std::size_t limit_ = 4096;
};

}  // namespace tessera::emulator
