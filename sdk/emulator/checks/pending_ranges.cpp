#include "checks/pending_ranges.hpp"

#include <algorithm>

namespace tessera::emulator {

void PendingRanges::begin(Agent async, std::uint32_t begin, std::uint32_t end, bool writes, const char* what,
                          std::uint32_t line)
{
    Slot slot = 0;
    if (free_.empty()) {
        slot = static_cast<Slot>(ranges_.size());
        ranges_.emplace_back();
    } else {
        slot = free_.back();
        free_.pop_back();
    }
    ranges_[slot] = {async, writes, begin, end, what, line, next_order_++};
    ++count_;
    if (of_agent_.size() <= async) {
        of_agent_.resize(async + std::size_t{1});
    }
    of_agent_[async].push_back(slot);
    for (std::uint32_t g = begin >> granule_bits; g <= (end - 1) >> granule_bits; ++g) {
        in_granule_[g].push_back(slot);
    }
}

void PendingRanges::end(Agent async)
{
    if (async >= of_agent_.size()) {
        return;
    }
    for (const Slot slot : of_agent_[async]) {
        const Range& range = ranges_[slot];
        for (std::uint32_t g = range.begin >> granule_bits; g <= (range.end - 1) >> granule_bits; ++g) {
            std::vector<Slot>& slots = in_granule_[g];
            *std::ranges::find(slots, slot) = slots.back();
            slots.pop_back();
        }
        free_.push_back(slot);
        --count_;
    }
    of_agent_[async].clear();
}

const PendingRanges::Range* PendingRanges::first_conflict(Agent agent, std::uint32_t begin, std::uint32_t end,
                                                          bool writes) const
{
    const Range* first = nullptr;
    for (std::uint32_t g = begin >> granule_bits; g <= (end - 1) >> granule_bits; ++g) {
        for (const Slot slot : in_granule_[g]) {
            const Range& range = ranges_[slot];
            if (range.async != agent && (writes || range.writes) && range.begin < end && begin < range.end &&
                (first == nullptr || range.order < first->order)) {
                first = &range;
            }
        }
    }
    return first;
}

bool PendingRanges::began_before(const Range& range, Agent agent) const
{
    return agent >= of_agent_.size() ||
           std::ranges::all_of(of_agent_[agent], [&](Slot slot) { return range.order < ranges_[slot].order; });
}

}  // namespace tessera::emulator
