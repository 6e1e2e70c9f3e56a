#include "checks/pending_ranges.hpp"

#include <algorithm>
#include <bit>
#include <utility>

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

std::vector<PendingRanges::Range> PendingRanges::ranges_of(const Pieces& pieces)
{
    std::vector<std::uint32_t> offsets;
    for_each_lane(pieces.lanes, [&](unsigned lane) { offsets.push_back(pieces.offsets[lane]); });
    std::ranges::sort(offsets);
    std::vector<Range> ranges;
    for (const std::uint32_t offset : offsets) {
        if (ranges.empty() || offset > ranges.back().end) {
            ranges.push_back(
                {pieces.async, true, offset, offset, pieces.what, pieces.line, pieces.order + ranges.size()});
        }
        ranges.back().end = offset + pieces.size;
    }
    return ranges;
}

const PendingRanges::Pieces* PendingRanges::pieces_of(Agent agent) const noexcept
{
    const Slot slot = agent < pieces_of_agent_.size() ? pieces_of_agent_[agent] : 0;
    return slot == 0 ? nullptr : &lane_ranges_[slot - 1];
}

template <typename Body>
void PendingRanges::for_each_word(const Pieces& pieces, LaneMask lanes, Body&& body)
{
    if (lanes == all_lanes) {
        for (std::uint32_t part = 0; part < pieces.size / 4; ++part) {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                body(pieces.offsets[lane] / 4 + part);
            }
        }
        return;
    }
    for_each_lane(lanes, [&](unsigned lane) {
        const std::uint32_t first = pieces.offsets[lane] / 4;
        for (std::uint32_t word = first; word < first + pieces.size / 4; ++word) {
            body(word);
        }
    });
}

void PendingRanges::begin_lanes(Agent async, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size,
                                const char* what, std::uint32_t line)
{
    if (owners_.empty()) {
        owners_.resize((in_granule_.size() << granule_bits) / 4);
    }
    if (pieces_of_agent_.size() <= async) {
        pieces_of_agent_.resize(async + std::size_t{1});
    }
    if (free_pieces_.empty()) {
        free_pieces_.push_back(static_cast<Slot>(lane_ranges_.size()));
        lane_ranges_.emplace_back();
    }
    const Slot slot = free_pieces_.back();
    free_pieces_.pop_back();
    ++pieces_;
    Pieces& pieces = lane_ranges_[slot];
    pieces_of_agent_[async] = slot + 1;
    pieces.async = async;
    pieces.lanes = lanes;
    pieces.size = size;
    pieces.line = line;
    pieces.what = what;
    pieces.order = next_order_;
    next_order_ += warp_size;
    std::copy_n(offsets, warp_size, pieces.offsets.begin());
    const Owner own = async + Owner{1};
    Owner* const owners = owners_.data();
    Owner others = 0;
    for_each_word(pieces, lanes, [&](std::uint32_t word) { others |= owners[word]; });
    if (others == 0) {  // usual
        for_each_word(pieces, lanes, [&](std::uint32_t word) { owners[word] = own; });
        return;
    }
    for_each_word(pieces, lanes,
                  [&](std::uint32_t word) { owners[word] = owners[word] == 0 || owners[word] == own ? own : several; });
}

/// Where several are, after one has ended.
PendingRanges::Owner PendingRanges::owner_of(std::uint32_t word) const noexcept
{
    Owner owner = 0;
    for (const Pieces& pieces : lane_ranges_) {
        for_each_lane(pieces.lanes, [&](unsigned lane) {
            if (word - pieces.offsets[lane] / 4 < pieces.size / 4) {  // wraps around to a large value
                const Owner other = pieces.async + Owner{1};
                owner = owner == 0 || owner == other ? other : several;
            }
        });
    }
    return owner;
}

void PendingRanges::end_pieces(const Pieces& pieces)
{
    const Slot slot = std::exchange(pieces_of_agent_[pieces.async], 0) - 1;
    const LaneMask lanes = std::exchange(lane_ranges_[slot].lanes, 0);
    free_pieces_.push_back(slot);
    --pieces_;
    const Owner own = pieces.async + Owner{1};
    Owner* const owners = owners_.data();
    bool shared = false;
    for_each_word(pieces, lanes, [&](std::uint32_t word) { shared |= owners[word] == several; });
    if (!shared) {  // usual: all these words are its own
        for_each_word(pieces, lanes, [&](std::uint32_t word) { owners[word] = 0; });
        return;
    }
    for_each_word(pieces, lanes, [&](std::uint32_t word) {
        const Owner owner = owners[word];
        owners[word] = owner == several ? owner_of(word) : owner == own ? 0 : owner;
    });
}

void PendingRanges::end(Agent async)
{
    if (const Pieces* const found = pieces_of(async)) {
        end_pieces(*found);
    }
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

bool PendingRanges::has_foreign_piece(Agent agent, std::uint32_t begin, std::uint32_t end) const noexcept
{
    const Owner own = agent + Owner{1};
    const Owner* const owners = owners_.data();
    bool foreign = false;
    for (std::uint32_t word = begin / 4; word < (end + 3) / 4; ++word) {  // all of them: vectorized
        foreign |= (owners[word] != 0) & (owners[word] != own);
    }
    return foreign;
}

const PendingRanges::Range* PendingRanges::first_conflict(Agent agent, std::uint32_t begin, std::uint32_t end,
                                                          bool writes) const
{
    const Range* first = nullptr;
    if (pieces_ != 0 && has_foreign_piece(agent, begin, end)) {
        for (const Pieces& pieces : lane_ranges_) {
            if (pieces.async == agent) {
                continue;
            }
            for (const Range& range : ranges_of(pieces)) {
                if (range.begin < end && begin < range.end && (first == nullptr || range.order < first->order)) {
                    found_ = range;
                    first = &found_;
                }
            }
        }
    }
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

bool PendingRanges::conflicts(Agent agent, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size,
                              bool writes) const
{
    if (count_ == 0) {  // usual: only pieces
        const Owner own = agent + Owner{1};
        const std::uint32_t any = offsets[std::countr_zero(lanes)];
        bool foreign = false;
        for (std::uint32_t part = 0; part < size; part += 4) {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                const Owner owner = owners_[(((lanes >> lane & 1) != 0 ? offsets[lane] : any) + part) / 4];
                foreign |= (owner != 0) & (owner != own);
            }
        }
        return foreign;
    }
    bool found = false;
    for_each_lane(lanes, [&](unsigned lane) {
        found = found || first_conflict(agent, offsets[lane], offsets[lane] + size, writes) != nullptr;
    });
    return found;
}

bool PendingRanges::began_before(const Range& range, Agent agent) const
{
    if (const Pieces* const pieces = pieces_of(agent); pieces != nullptr && pieces->order <= range.order) {
        return false;
    }
    return agent >= of_agent_.size() ||
           std::ranges::all_of(of_agent_[agent], [&](Slot slot) { return range.order < ranges_[slot].order; });
}

}  // namespace tessera::emulator
