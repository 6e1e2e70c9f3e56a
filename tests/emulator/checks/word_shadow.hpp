#pragma once

// The rules of SharedShadow written down once more, for each word alone: no lines, no runs, no memory of what is already
// checked. Tests compare the two.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/windows.hpp"
#include "checks/shared_shadow.hpp"

namespace tessera::emulator::test {

class WordShadow {
public:
    WordShadow(std::uint32_t bytes, const Clocks& clocks, bool same_value_races)
        : clocks_(clocks), same_value_races_(same_value_races), words_((bytes + 3) / 4)
    {}

    struct By {  // an access
        Agent agent;
        std::uint32_t time;
        bool async_proxy, atomic;
        const char* what;
        std::uint32_t line;
    };

    std::optional<ShadowFinding> touch(Agent agent, bool writes, std::uint32_t offset, std::uint32_t size, Proxy proxy,
                                       const char* what, std::uint32_t line, bool atomic, unsigned lane,
                                       const StoredBytes* stored = nullptr)
    {
        start(agent, proxy, what, line, atomic, stored);
        if (lane < warp_size) {
            std::array<std::uint32_t, warp_size> offsets{};
            offsets[lane] = offset;
            check_lanes(writes, offsets.data(), LaneMask{1} << lane, size);
        }
        touch_range(writes, offset, size, lane);
        return std::move(found_);
    }

    std::optional<ShadowFinding> touch_lanes(Agent agent, bool writes, const std::uint32_t* offsets, LaneMask lanes,
                                             std::uint32_t size, const char* what, std::uint32_t line, bool atomic,
                                             const StoredBytes* stored = nullptr)
    {
        start(agent, Proxy::generic, what, line, atomic, stored);
        check_lanes(writes, offsets, lanes, size);
        const std::uint32_t base = offsets[std::countr_zero(lanes)];
        bool row = lanes == all_lanes, same = row;
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            row = row && offsets[lane] == base + lane * size;
            same = same && offsets[lane] == base;
        }
        if (row && (size < 4 || base % 4 != 0)) {
            touch_range(writes, base, size * warp_size, Clocks::any_lane);
        } else if (row) {
            check_pending(writes, base, base + size * warp_size);
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                touch_words(writes, base + lane * size, base + (lane + 1) * size, lane);
            }
        } else if (same) {
            touch_range(writes, base, size, Clocks::any_lane);
        } else {
            for_each_lane(lanes, [&](unsigned lane) { touch_range(writes, offsets[lane], size, lane); });
        }
        return std::move(found_);
    }

    void begin(Agent async, std::uint32_t offset, std::uint32_t size, bool writes, const char* what, std::uint32_t line)
    {
        const auto limit = static_cast<std::uint32_t>(words_.size() * 4);
        if (size != 0 && offset < limit) {
            pending_.push_back({async, writes, offset, std::min(offset + size, limit), what, line});
        }
    }
    void end(Agent async)
    {
        std::erase_if(pending_, [&](const Pending& p) { return p.async == async; });
    }
    void mark_barrier(std::uint32_t offset, bool is_barrier)
    {
        for (std::size_t word = offset / 4; word < std::min<std::size_t>(offset / 4 + std::size_t{2}, words_.size());
             ++word) {
            words_[word].barrier = is_barrier;
            words_[word].initialized = 0xF;
        }
    }
    [[nodiscard]] bool initialized(std::uint32_t byte) const
    {
        return (words_[byte / 4].initialized >> (byte % 4) & 1) != 0;
    }

private:
    struct Word {
        std::optional<By> writer;
        std::vector<By> readers;
        unsigned initialized = 0, written = 0, read = 0;
        unsigned lane = 0;
        bool barrier = false;
    };
    struct Pending {
        Agent async;
        bool writes;
        std::uint32_t begin, end;
        const char* what;
        std::uint32_t line;
    };

    static bool alike(const By& a, const By& b)
    {
        return a.agent == b.agent && a.time == b.time && a.async_proxy == b.async_proxy && a.atomic == b.atomic;
    }
    static bool equal(const By& a, const By& b) { return alike(a, b) && a.what == b.what && a.line == b.line; }
    [[nodiscard]] bool knows(const By& by) const { return clocks_.ordered({by.agent, by.time}, self_.agent); }

    void start(Agent agent, Proxy proxy, const char* what, std::uint32_t line, bool atomic, const StoredBytes* stored)
    {
        self_ = {agent, clocks_.now(agent).time, proxy == Proxy::async, atomic, what, line};
        stored_ = stored;
        found_.reset();
    }

    void find(FindingKind kind, std::string message)
    {
        if (!found_) {
            found_ = ShadowFinding{kind, std::move(message)};
        }
    }
    [[nodiscard]] std::string who(Agent agent) const
    {
        return clocks_.is_async(agent) ? "asynchronous work" : fmt::format("warp {} of the cluster", agent);
    }
    [[nodiscard]] std::string me(std::uint32_t offset, bool writes) const
    {
        return fmt::format("{} ({}) {} shared 0x{:x}", self_.what, who(self_.agent), writes ? "writes" : "reads",
                           shared_base + offset);
    }
    [[nodiscard]] std::string other(const By& by, bool wrote) const
    {
        return fmt::format("{} ({}, PTX line {}) {}", by.what, who(by.agent), by.line, wrote ? "wrote it" : "read it");
    }

    void check_pending(bool writes, std::uint32_t begin, std::uint32_t end)
    {
        for (std::size_t i = 0; i < pending_.size(); ++i) {
            const Pending& p = pending_[i];
            if (p.async == self_.agent || (!writes && !p.writes) || p.begin >= end || begin >= p.end) {
                continue;
            }
            const auto mine = std::ranges::find_if(pending_, [&](const Pending& q) { return q.async == self_.agent; });
            const bool too_early = !writes && pending_.begin() + static_cast<std::ptrdiff_t>(i) < mine;
            find(too_early ? FindingKind::async_read_pending : FindingKind::stage_overwritten,
                 fmt::format("{} while {} (PTX line {}) still {} 0x{:x} to 0x{:x}: wait until it is complete",
                             me(std::max(begin, p.begin), writes), p.what, p.line, p.writes ? "writes" : "reads",
                             shared_base + p.begin, shared_base + p.end));
            return;
        }
    }

    void touch_range(bool writes, std::uint32_t offset, std::uint32_t size, unsigned lane)
    {
        const std::uint32_t end = std::min(offset + size, static_cast<std::uint32_t>(words_.size() * 4));
        if (offset < end) {
            check_pending(writes, offset, end);
            touch_words(writes, offset, end, lane);
        }
    }

    void touch_words(bool writes, std::uint32_t begin, std::uint32_t end, unsigned lane)
    {
        for (std::uint32_t at = begin; at < end && at / 4 < words_.size(); at = (at / 4 + 1) * 4) {
            unsigned bytes = 0;
            for (std::uint32_t byte = at; byte < std::min(end, (at / 4 + 1) * 4); ++byte) {
                bytes |= 1U << (byte % 4);
            }
            if (writes) {
                write(words_[at / 4], at / 4 * 4, bytes, lane);
            } else {
                read(words_[at / 4], at / 4 * 4, bytes);
            }
        }
    }

    /// What concerns single lanes of a warp.
    void check_lanes(bool writes, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size)
    {
        if (clocks_.is_async(self_.agent)) {
            return;
        }
        for_each_lane(lanes, [&](unsigned lane) {
            for_each_word(offsets[lane], size,
                          [&](std::uint32_t word, unsigned bytes) { check_lane(writes, word, bytes, lane); });
        });
        Reads& reads = reads_[self_.agent];
        if (reads.meeting != clocks_.meetings(self_.agent)) {
            reads = {clocks_.meetings(self_.agent), {}};
        }
        if (self_.atomic) {
            return;
        }
        if (!writes) {
            note_read(reads, offsets, lanes, size);
            return;
        }
        for_each_lane(lanes, [&](unsigned lane) {
            for_each_word(offsets[lane], size, [&](std::uint32_t word, unsigned bytes) {
                for (const LaneRead& by : reads.words[word]) {
                    if (by.lane != lane && (by.bytes & bytes) != 0 &&
                        (stored_ == nullptr || !stored_->unchanged(word * 4, static_cast<std::uint8_t>(bytes)))) {
                        find(FindingKind::shared_race, of_lanes(lane, true, word, by.what, by.lane, by.line, "read"));
                        break;
                    }
                }
            });
        });
    }

    struct LaneRead {
        unsigned lane, bytes;
        const char* what;
        std::uint32_t line;
    };
    struct Reads {  // of a warp, since its lanes last met
        std::uint64_t meeting = 0;
        std::map<std::uint32_t, std::vector<LaneRead>> words{};
    };

    void note_read(Reads& reads, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size)
    {
        for_each_lane(lanes, [&](unsigned lane) {
            for_each_word(offsets[lane], size, [&](std::uint32_t word, unsigned bytes) {
                enter(reads.words[word], {lane, bytes, self_.what, self_.line});
            });
        });
    }
    /// Two lanes are remembered.
    static void enter(std::vector<LaneRead>& word, const LaneRead& read)
    {
        for (LaneRead& by : word) {
            if (by.lane == read.lane) {
                by.bytes |= read.bytes;
                return;
            }
        }
        if (word.size() < 2) {
            word.push_back(read);
        }
    }

    template <typename Body>
    void for_each_word(std::uint32_t begin, std::uint32_t size, Body&& body)
    {
        for (std::uint32_t word = begin / 4; word * 4 < begin + size && word < words_.size(); ++word) {
            const std::uint32_t first = std::max(begin, word * 4), last = std::min(begin + size, word * 4 + 4);
            body(word, ((1U << (last - first)) - 1) << (first % 4));
        }
    }

    [[nodiscard]] std::string of_lanes(unsigned lane, bool writes, std::uint32_t word, const char* what, unsigned other,
                                       std::uint32_t line, const char* did) const
    {
        return fmt::format(
            "{} (lane {} of warp {} of the cluster) {} shared 0x{:x}, but {} (lane {} of the same warp, "
            "PTX line {}) {} it, with no __syncwarp() or other synchronization between the two: "
            "lanes of a warp are not in step by themselves",
            self_.what, lane, self_.agent, writes ? "writes" : "reads", shared_base + word * 4, what, other, line, did);
    }

    void check_lane(bool writes, std::uint32_t at, unsigned bytes, unsigned lane)
    {
        const Word& word = words_[at];
        const auto unknown = [&](const By& by, unsigned by_lane) {
            return by.agent != self_.agent && knows(by) &&
                   !clocks_.lane_knows(self_.agent, lane, {by.agent, by.time}, by_lane);
        };
        const auto too_late = [&](const By& by, bool wrote) {
            const bool async = clocks_.is_async(by.agent);
            find(!async   ? FindingKind::shared_race
                 : writes ? FindingKind::stage_overwritten
                          : FindingKind::async_read_pending,
                 fmt::format("{} by lane {}, but {}, and only other lanes of the warp have waited for it: execute "
                             "__syncwarp() after the wait",
                             me(at * 4, writes), lane, other(by, wrote)));
        };
        if (writes && (word.read & bytes) != 0) {
            const By* first = nullptr;
            for (const By& by : word.readers) {
                if (!(self_.atomic && by.atomic) && unknown(by, Clocks::any_lane) &&
                    (first == nullptr || key(by) < key(*first))) {
                    first = &by;
                }
            }
            if (first != nullptr) {
                too_late(*first, false);
            }
        }
        if (!word.writer || (word.written & bytes) == 0 || (self_.atomic && word.writer->atomic)) {
            return;
        }
        if (word.writer->agent != self_.agent) {
            if (unknown(*word.writer, word.lane)) {
                too_late(*word.writer, true);
            }
            return;
        }
        if (word.lane >= warp_size || clocks_.lanes_ordered(self_.agent, word.writer->time, word.lane, lane)) {
            return;
        }
        const bool same_store = word.writer->what == self_.what && word.writer->line == self_.line;
        if (writes &&
            (same_store || (stored_ != nullptr && stored_->unchanged(at * 4, static_cast<std::uint8_t>(bytes))))) {
            return;
        }
        find(FindingKind::shared_race,
             of_lanes(lane, writes, at, word.writer->what, word.lane, word.writer->line, "wrote"));
    }

    static std::tuple<std::uint32_t, Agent, bool, bool> key(const By& by)
    {
        return {by.time, by.agent, by.async_proxy, by.atomic};
    }

    void check_writer(const Word& word, std::uint32_t offset, unsigned bytes, bool writes)
    {
        if (!word.writer || (word.written & bytes) == 0) {
            return;
        }
        const By& by = *word.writer;
        if (knows(by)) {
            if (!clocks_.released({by.agent, by.time}, word.lane, self_.agent) && !(self_.atomic && by.atomic)) {
                const bool async = clocks_.is_async(by.agent);
                find(
                    !async   ? FindingKind::shared_race
                    : writes ? FindingKind::stage_overwritten
                             : FindingKind::async_read_pending,
                    fmt::format("{}, but {} by lane {}, which has not synchronized since, only other lanes of its warp "
                                "have: execute __syncwarp() before one lane arrives, sets a flag or issues work for "
                                "all",
                                me(offset, writes), other(by, true), word.lane));
            } else if (!writes && self_.async_proxy && !by.async_proxy &&
                       !clocks_.ordered_for_async({by.agent, by.time}, self_.agent, word.lane)) {
                find(FindingKind::missing_proxy_fence,
                     fmt::format("{} through the async proxy, but {} through the generic proxy and lane {} executed no "
                                 "fence.proxy.async before the synchronization: each writing thread needs one",
                                 me(offset, false), other(by, true),
                                 word.lane < warp_size ? fmt::format("{}", word.lane) : "of the writer"));
            }
        } else if (self_.atomic && by.atomic) {
            return;
        } else if (clocks_.is_async(by.agent)) {
            find(writes ? FindingKind::stage_overwritten : FindingKind::async_read_pending,
                 fmt::format("{}, but {} and is not known to be complete: wait for its mbarrier or group first",
                             me(offset, writes), other(by, true)));
        } else if (stored_ != nullptr && !self_.atomic && !by.atomic &&
                   stored_->unchanged(offset, static_cast<std::uint8_t>(bytes))) {
            if (same_value_races_) {
                find(FindingKind::same_value_race,
                     fmt::format("{}, but {} the same value, with no barrier or other synchronization between the two",
                                 me(offset, writes), other(by, true)));
            }
        } else {
            find(FindingKind::shared_race,
                 fmt::format("{}, but {}, with no barrier or other synchronization between the two", me(offset, writes),
                             other(by, true)));
        }
    }

    void write(Word& word, std::uint32_t offset, unsigned bytes, unsigned lane)
    {
        check_writer(word, offset, bytes, true);
        if ((word.read & bytes) != 0) {
            const By* first = nullptr;
            for (const By& by : word.readers) {
                if (!(self_.atomic && by.atomic) && !knows(by) && (first == nullptr || key(by) < key(*first))) {
                    first = &by;
                }
            }
            if (first != nullptr && clocks_.is_async(first->agent)) {
                find(FindingKind::stage_overwritten,
                     fmt::format("{}, but {} and is not known to be complete: wait for its commit or group first",
                                 me(offset, true), other(*first, false)));
            } else if (first != nullptr) {
                find(FindingKind::shared_race,
                     fmt::format("{}, but {}, with no barrier or other synchronization between the two",
                                 me(offset, true), other(*first, false)));
            }
        }
        if (word.barrier) {
            find(FindingKind::barrier_misuse,
                 fmt::format("{}, where an mbarrier is: execute mbarrier.inval before this memory is used for "
                             "something else",
                             me(offset, true)));
        }
        if (word.writer && equal(*word.writer, self_)) {
            word.lane = word.lane == lane ? lane : unsigned{Clocks::any_lane};
            word.written |= bytes;
        } else {
            word.writer = self_;
            word.lane = lane;
            word.written = bytes;
        }
        word.initialized |= bytes;
        word.read &= ~bytes;
        if (word.read == 0) {
            word.readers.clear();
        }
    }

    void read(Word& word, std::uint32_t offset, unsigned bytes)
    {
        check_writer(word, offset, bytes, false);
        if ((word.initialized & bytes) != bytes) {
            find(FindingKind::uninitialized_shared, fmt::format("{}, which was never written", me(offset, false)));
        }
        if (word.readers.size() == 1 && alike(word.readers[0], self_)) {
            word.read |= bytes;
        } else if ((word.read & bytes) == 0) {
            word.readers.assign(1, self_);
            word.read = bytes;
        } else {
            // What is ordered after this reader is ordered after those before it, too.
            std::erase_if(word.readers, [&](const By& by) {
                return knows(by) && (!self_.atomic || by.atomic || clocks_.known_to_all({by.agent, by.time}));
            });
            word.readers.push_back(self_);
            word.read = word.readers.size() == 1 ? bytes : word.read & bytes;
        }
    }

    const Clocks& clocks_;
    bool same_value_races_;
    std::vector<Word> words_;
    std::vector<Pending> pending_;
    By self_{};
    const StoredBytes* stored_ = nullptr;
    std::map<Agent, Reads> reads_;
    std::optional<ShadowFinding> found_;
};

}  // namespace tessera::emulator::test
