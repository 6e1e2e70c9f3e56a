#include "checks/reader_sets.hpp"

#include <algorithm>

namespace tessera::emulator {

Readers ReaderSets::push(Readers before, Mark mark, std::uint32_t stamp)
{
    const Entry& tail = entries_[before];
    Entry entry{mark, agent_bit(mark), stamp, stamp, before};
    if (before != 0) {
        entry.agents |= tail.agents;
        entry.oldest = std::min(stamp, tail.oldest);
    }
    entries_.push_back(entry);
    return static_cast<Readers>(entries_.size() - 1);
}

Readers ReaderSets::add(Readers readers, Mark reader, const Earlier* earlier)
{
    const Entry& head = entries_[readers];
    // Usual: all were added after anything that this agent has acquired, so it knows none of them.
    if (head.oldest >= clocks_.knows_releases(epoch_of(reader).agent) && (head.agents & agent_bit(reader)) == 0) {
        return push(readers, reader, stamp(earlier));
    }
    return add_and_drop(readers, reader, earlier);
}

Readers ReaderSets::add_and_drop(Readers readers, Mark reader, const Earlier* earlier)
{
    const Agent agent = epoch_of(reader).agent;
    kept_.clear();
    std::size_t above_last_drop = 0;  // so many of kept_ are above the last dropped entry
    Readers below = readers;          // what is below it, unchanged
    bool itself = false, others = false;
    for (Readers at = readers; at != 0; at = entries_[at].before) {
        const Mark mark = entries_[at].mark;
        if (knew(agent, epoch_of(mark), earlier) &&
            (!is_atomic(reader) || is_atomic(mark) || clocks_.known_to_all(epoch_of(mark)))) {
            above_last_drop = kept_.size();
            below = entries_[at].before;
            (mark == reader ? itself : others) = true;
        } else {
            kept_.push_back(entries_[at]);
        }
    }
    if (itself && !others) {
        return readers;
    }
    for (std::size_t i = above_last_drop; i-- > 0;) {
        below = push(below, kept_[i].mark, kept_[i].stamp);
    }
    return push(below, reader, stamp(earlier));
}

/// `used` is 1 for the sets that are used, and gets their new numbers.
void ReaderSets::renumber(std::vector<Readers>& used)
{
    for (std::size_t i = entries_.size() - 1; i > 0; --i) {  // an entry is after what it extends
        if (used[i] != 0) {
            used[entries_[i].before] = 1;
        }
    }
    used[0] = 0;
    Readers next = 1;
    for (std::size_t i = 1; i < entries_.size(); ++i) {
        if (used[i] != 0) {
            entries_[next] = entries_[i];
            entries_[next].before = used[entries_[i].before];
            used[i] = next++;
        }
    }
    entries_.resize(next);
}

}  // namespace tessera::emulator
