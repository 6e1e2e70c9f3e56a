// The reads that SharedShadow enters later, or never.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <optional>
#include <vector>

#include "checks/shared_shadow.hpp"
#include "checks/word_bits.hpp"

namespace tessera::emulator {

/// For reads that these lanes are about to make. Returns false if they are not for the log.
bool SharedShadow::begin_reads(Agent warp, LaneMask lanes)
{
    if (plain_) {
        return false;
    }
    if (interval_ != clocks_.interval()) {
        enter_interval();
    }
    // Lanes may have written elsewhere since they synchronized: what they read early was written before the interval.
    if (!clocks_.on_its_own(warp) || (clocks_.lanes_differ(warp) && !clocks_.lanes_know_before_interval(warp))) {
        return false;
    }
    log_.begin({.meeting = clocks_.meetings(warp),
                .time = clocks_.now(warp).time,
                .releases = clocks_.releases(),
                .lanes = lanes,
                .agent = warp},
               clocks_.changes());
    return true;
}

/// All warps know all accesses before the interval, so that the lines of these are like any others; except for those of
/// asynchronous operations for which somebody has not waited.
void SharedShadow::enter_interval()
{
    if (clocks_.quiet_interval() <= interval_) {
        enter_reads();
    }
    log_.clear();
    interval_ = clocks_.interval();
    starts_ = clocks_.interval_starts();
    std::erase_if(async_agents_, [&](Agent agent) {
        const bool over = clocks_.over_before_interval({agent, async_times_[agent]});
        async_times_[agent] = over ? 0 : async_times_[agent];
        return over;
    });
    if (async_agents_.empty()) {
        async_.clear();
    }
    entered_ = async_;
    early_words_ = written_words_;
    if (!async_agents_.empty()) {
        for (std::uint32_t line = 0; line < early_words_.size(); ++line) {
            early_words_[line] = entered_.has_any(line, line) ? 0 : early_words_[line];
        }
    }
}

/// As if they were made now by agents that know only what they knew then.
void SharedShadow::enter_reads()
{
    for (const ReadLog::Read& read : log_.reads()) {
        const ReadLog::Moment& moment = log_.moment(read);
        const ReaderSets::Earlier earlier{moment.releases, &starts_};
        Access access;
        access.agent = moment.agent;
        access.what = read.site->what;
        access.line = read.site->line;
        access.self = (Mark{moment.time} << 32) | (Mark{moment.agent} << 16) | site(read.site->what, read.site->line);
        access.earlier = &earlier;
        const ReadLog::Offsets offsets = log_.offsets(read);
        if (moment.meeting == clocks_.meetings(moment.agent)) {
            add_lane_reads(access, offsets.data(), moment.lanes, read.size);
        }
        touch_lanes<false>(access, offsets.data(), moment.lanes, read.size);
    }
    log_.clear();
}

void SharedShadow::enter_reads_of(const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size)
{
    if (interval_ != clocks_.interval()) {
        enter_interval();
    }
    if (log_.empty()) {
        return;
    }
    const auto [low, high] = bounds_of(offsets, lanes);
    if (log_.may_have(low / line_bytes, (high + size - 1) / line_bytes)) {
        enter_reads();
    }
}

void SharedShadow::note_entered(Agent agent, std::uint32_t begin, std::uint32_t end)
{
    if (interval_ != clocks_.interval()) {
        enter_interval();
    }
    const std::uint32_t first = begin / line_bytes, last = (end - 1) / line_bytes;
    if (log_.may_have(first, last)) {
        enter_reads();
    }
    add_entered(first, last);
    if (clocks_.is_async(agent)) {
        async_.add(first, last);
        if (async_times_.size() <= agent) {
            async_times_.resize(agent + std::size_t{1}, 0);
        }
        if (async_times_[agent] == 0) {
            async_agents_.push_back(agent);
        }
        async_times_[agent] = clocks_.now(agent).time;
    }
}

/// The same for the lanes of an access: from `low` on, and the last begins at `high`.
void SharedShadow::note_entered_lanes(Agent agent, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size,
                                      std::uint32_t low, std::uint32_t high)
{
    const std::uint32_t first = offsets[std::countr_zero(lanes)];
    note_entered(agent, first, first + size);
    const bool simple = !log_.may_have(low / line_bytes, (high + size - 1) / line_bytes);
    const bool async = clocks_.is_async(agent);
    if (!simple) {
        for_each_lane(lanes, [&](unsigned lane) { note_entered(agent, offsets[lane], offsets[lane] + size); });
        return;
    }
    // A lane's bytes are aligned, so they are in one line.
    if (const std::uint32_t part = low / line_bytes / 64; lanes == all_lanes && high / line_bytes / 64 == part) {
        std::uint64_t bits = 0;
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            bits |= std::uint64_t{1} << (offsets[lane] / line_bytes % 64);
        }
        entered_.add_bits(part, bits);
        if (async) {
            async_.add_bits(part, bits);
        }
        for (; bits != 0; bits &= bits - 1) {
            early_words_[part * 64 + static_cast<std::uint32_t>(std::countr_zero(bits))] = 0;
        }
        return;
    }
    for_each_lane(lanes, [&](unsigned lane) {
        entered_.add(offsets[lane] / line_bytes);
        early_words_[offsets[lane] / line_bytes] = 0;
        if (async) {
            async_.add(offsets[lane] / line_bytes);
        }
    });
}

void SharedShadow::learn_written(std::uint32_t line)
{
    const auto is_written = [](std::uint16_t bits) { return (bits & all_bytes) == all_bytes; };
    std::uint32_t words = 0;
    if (lines_[line].uniform) {
        words = is_written(lines_[line].state.bits) ? ~0U : 0;
    } else {
        const std::uint16_t* const bits = &bits_[line * line_words];
        for (std::uint32_t i = 0; i < line_words; ++i) {
            words |= std::uint32_t{is_written(bits[i])} << i;
        }
    }
    written_words_[line] = words;
    early_words_[line] = entered_.has_any(line, line) ? 0 : words;
}

/// A lane's bytes are aligned, so they are in one line.
bool SharedShadow::are_early(const LaneOffsets& offsets, std::uint32_t size)
{
    const std::uint32_t ones = (1U << (size + 3) / 4) - 1;
    const auto all = [&] {
        std::uint32_t missing = 0;
        const std::uint32_t* const words = early_words_.data();
        if (offsets.shape == AccessShape::scattered) {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                const std::uint32_t word = (offsets.at[lane] + offsets.shift) / 4;
                missing |= ~words[word / line_words] & (ones << word % line_words);
            }
        } else {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                const std::uint32_t word = (offsets.low + lane * offsets.stride) / 4;
                missing |= ~words[word / line_words] & (ones << word % line_words);
            }
        }
        return missing == 0;
    };
    if (all()) {
        return true;
    }
    const std::uint32_t first = offsets.low / line_bytes, last = (offsets.high + size - 1) / line_bytes;
    if (entered_.has_any(first, last)) {
        return false;
    }
    for (std::uint32_t line = first; line <= last; ++line) {
        if (written_words_[line] != ~0U) {
            learn_written(line);
        }
    }
    return all();
}

void SharedShadow::compare_early(Agent warp, const LaneOffsets& offsets, LaneMask lanes, std::uint32_t size,
                                 const ReadSite& site)
{
    std::array<std::uint32_t, warp_size> at{};
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        at[lane] = offsets[lane];
    }
    compare(std::nullopt, twin_->read_lanes(warp, at.data(), lanes, size, site.what, site.line));
}

}  // namespace tessera::emulator
