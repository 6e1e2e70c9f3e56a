#pragma once

// The state of each byte of a CTA's shared memory: whether it was written, by whom last, who has read it since, and
// which asynchronous operation still uses it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_kinds.hpp"
#include "base/paths.hpp"
#include "checks/access_mark.hpp"
#include "checks/clocks.hpp"
#include "checks/lane_reads.hpp"
#include "checks/line_set.hpp"
#include "checks/pending_ranges.hpp"
#include "checks/read_log.hpp"
#include "checks/reader_sets.hpp"
#include "checks/report.hpp"

namespace tessera::emulator {

/// Result of a check: nothing, or a finding's kind and message. The caller adds the place.
struct ShadowFinding {
    FindingKind kind;
    std::string message;           ///< empty if KnownFindings says so
    std::uint32_t other_line = 0;  ///< PTX line of the access that this one conflicts with
};

/// The findings of an instruction that are only counted any more, so that they need no message.
class KnownFindings {
public:
    [[nodiscard]] virtual bool knows(FindingKind kind, std::uint32_t other_line) const = 0;

protected:
    ~KnownFindings() = default;
};

/// The values of a store.
class StoredBytes {
public:
    /// Returns true if the store does not change these bytes of the word at `offset`. `bytes` has one bit for each.
    [[nodiscard]] virtual bool unchanged(std::uint32_t offset, std::uint8_t bytes) const = 0;

protected:
    ~StoredBytes() = default;
};

/// Finds races as FastTrack does (Flanagan and Freund, PLDI 2009): for each word of 4 bytes, the last write and the
/// reads since then, as times of agents. Bytes within a word are distinguished only as far as this gives no false
/// alarm: of several agents that access different bytes of one word, only the last is remembered. Of the lanes of one
/// warp, the last writer is remembered, and in LaneReads those that read since the lanes last met.
///
/// A line of 32 words in the same state has this state once. Words that an access finds in the same state are checked
/// once. Most reads are of lines that nobody has written in this interval of Clocks: read_early() only notes them. A
/// write to such a line enters them first; at the end of the interval they are forgotten, since everybody knows them.
/// Paths::plain does none of this.
class SharedShadow {
public:
    /// `same_value_races`: unordered stores of equal values are findings, too. With Paths::both, a difference between
    /// the two throws PathsDiffer.
    /// `strict_fences`: so are asynchronous writes over ordinary ones without a proxy fence in between.
    SharedShadow(std::uint32_t bytes, Clocks& clocks, bool same_value_races = false, Paths paths = Paths::fast,
                 bool strict_fences = false);

    /// `agent` reads or writes [offset, offset + size) through `proxy`. `atomic` accesses do not race with each other.
    /// `what` names the access in messages of later conflicts ("st.shared", "bulk copy", "tcgen05.mma"); it must
    /// outlive the shadow. `lane` is the lane of the warp, if there is one: fence.proxy.async counts for each lane
    /// alone, and lanes need order among themselves. With `unwritten`, bytes that were never written are no finding;
    /// the flag is set instead.
    std::optional<ShadowFinding> read(Agent agent, std::uint32_t offset, std::uint32_t size, Proxy proxy,
                                      const char* what, std::uint32_t ptx_line, bool atomic = false,
                                      bool* unwritten = nullptr, unsigned lane = Clocks::any_lane,
                                      const KnownFindings* known = nullptr);
    std::optional<ShadowFinding> write(Agent agent, std::uint32_t offset, std::uint32_t size, Proxy proxy,
                                       const char* what, std::uint32_t ptx_line, bool atomic = false,
                                       unsigned lane = Clocks::any_lane, const KnownFindings* known = nullptr);
    /// The same for the lanes of a warp, through the generic proxy: lane i accesses `size` bytes at offsets[i]. Returns
    /// the first finding. With `stored`, stores of several warps that leave the same value are no race.
    std::optional<ShadowFinding> read_lanes(Agent warp, const std::uint32_t* offsets, LaneMask lanes,
                                            std::uint32_t size, const char* what, std::uint32_t ptx_line,
                                            bool atomic = false, bool* unwritten = nullptr,
                                            const KnownFindings* known = nullptr);
    std::optional<ShadowFinding> write_lanes(Agent warp, const std::uint32_t* offsets, LaneMask lanes,
                                             std::uint32_t size, const char* what, std::uint32_t ptx_line,
                                             bool atomic = false, const StoredBytes* stored = nullptr,
                                             const KnownFindings* known = nullptr);
    /// The same for a weak load, where it is known at once that there is no finding. Returns false, and has done nothing,
    /// if it is not.
    [[nodiscard]] bool read_early(Agent warp, const LaneOffsets& offsets, LaneMask lanes, std::uint32_t size,
                                  const ReadSite& site)
    {
        if (!log_.is_now(warp, lanes, clocks_.changes()) && !begin_reads(warp, lanes)) [[unlikely]] {
            return false;
        }
        const std::uint32_t first = offsets.low / line_bytes, last = (offsets.high + size - 1) / line_bytes;
        if (log_.full() || !(is_early_row(offsets, size, first, last) || are_early(offsets, size))) [[unlikely]] {
            return false;
        }
        log_.add(offsets, first, last, static_cast<std::uint8_t>(size), site);
        if (twin_) [[unlikely]] {
            compare_early(warp, offsets, lanes, size, site);
        }
        return true;
    }
    /// The same for all lanes, which read `size` bytes at one place, if nothing has happened since the warp's last early
    /// read. A launch of SIMT code is full of such loads. With Paths::both, read_early() must be called.
    template <std::uint32_t size>
    [[nodiscard, gnu::always_inline]] bool read_early_again(Agent warp, std::uint32_t low, const ReadSite& site)
    {
        constexpr std::uint32_t ones = (1U << (size + 3) / 4) - 1;
        const std::uint32_t line = low / line_bytes, needed = ones << (low / 4 % line_words);
        if ((~early_words_[line] & needed) == 0 && log_.takes(warp, clocks_.changes())) [[likely]] {
            log_.add_uniform(low, line, size, site);
            return true;
        }
        return false;
    }
    /// The same for lanes that read one after the other, from at most two lines.
    template <std::uint32_t size>
    [[nodiscard, gnu::always_inline]] bool read_early_row(Agent warp, std::uint32_t low, const ReadSite& site)
    {
        const std::uint32_t last_byte = low + warp_size * size - 1;
        const std::uint32_t first = low / line_bytes, last = last_byte / line_bytes;
        const std::uint32_t from = ~0U << (low / 4 % line_words), to = ~0U >> (~(last_byte / 4) % line_words);
        const std::uint32_t missing = first == last ? ~early_words_[first] & from & to
                                                    : (~early_words_[first] & from) | (~early_words_[last] & to);
        if (missing == 0 && last - first <= 1 && log_.takes(warp, clocks_.changes())) [[likely]] {
            log_.add_row(low, first, last, size, site);
            return true;
        }
        return false;
    }
    /// An asynchronous operation reads or writes this range from now until end(). Ordinary accesses in between are
    /// findings.
    void begin(Agent async, std::uint32_t offset, std::uint32_t size, bool writes, const char* what,
               std::uint32_t ptx_line);
    /// The same for a copy that writes `size` bytes for each of `lanes`, whole words at offsets[lane].
    void begin_lanes(Agent async, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size, const char* what,
                     std::uint32_t ptx_line);
    void end(Agent async);
    /// This memory holds an mbarrier: until inval, only mbarrier instructions may write it.
    void mark_barrier(std::uint32_t offset, bool is_barrier);
    [[nodiscard]] bool initialized(std::uint32_t offset, std::uint32_t size) const;
    void mark_initialized(std::uint32_t offset, std::uint32_t size);
    /// PTX line of the last write to the byte at `offset`, if it was one through the async proxy; else 0.
    [[nodiscard]] std::uint32_t async_writer_line(std::uint32_t offset) const noexcept;

private:
    static constexpr std::uint32_t line_words = 32, line_bytes = 4 * line_words;
    struct State {  // of a word
        Mark writer = 0;
        Readers readers = 0;     // of the last written contents
        std::uint16_t bits = 0;  // one for each byte: initialized, written by `writer`, read by `readers`; is_barrier
        friend bool operator==(const State&, const State&) = default;
    };
    struct Line {
        State state;
        bool uniform = true;  // else the state of each word is in the arrays below
    };
    /// The lane of each word of a range: first, first + 1, ... every 2^shift words.
    struct LaneOfWord {
        std::uint32_t word = 0;
        unsigned first = Clocks::any_lane, shift = 31;
        [[nodiscard]] std::uint8_t operator()(std::uint32_t at) const noexcept
        {
            return static_cast<std::uint8_t>(first + ((at - word) >> shift));
        }
    };
    struct Site {
        const char* what;
        std::uint32_t line;
    };
    struct Access {  // in progress, with what is already known about it
        Agent agent = 0;
        Proxy proxy = Proxy::generic;
        bool atomic = false;
        const char* what = nullptr;
        std::uint32_t line = 0;
        Mark self = 0;
        // Already checked and in order: this writer (if it wrote with one of these lanes), and these readers.
        Mark good_writer = 0;
        std::uint64_t good_lanes = 0;
        Readers good_readers = 0;
        // The sets that this reader alone makes, and that it made last.
        Readers alone = 0, readers_before = 0, readers_after = 0;
        std::optional<ShadowFinding> found{};
        bool* unwritten = nullptr;            // of read()
        const StoredBytes* stored = nullptr;  // of write_lanes()
        const KnownFindings* known = nullptr;
        const ReaderSets::Earlier* earlier = nullptr;  // of a read in the log

        [[nodiscard]] bool is_good(Mark writer, unsigned lane) const noexcept
        {
            return alike(writer, good_writer) && (good_lanes >> lane & 1) != 0;
        }
    };

    Access start(Agent agent, Proxy proxy, const char* what, std::uint32_t line, bool atomic);
    template <bool writes>
    std::optional<ShadowFinding> touch_lanes(Access& access, const std::uint32_t* offsets, LaneMask lanes,
                                             std::uint32_t size);
    template <bool writes>
    void touch_runs(Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size);
    template <bool writes>
    bool touch_scattered(Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size);
    template <bool writes>
    void touch(Access& access, std::uint32_t offset, std::uint32_t size, unsigned lane, unsigned bytes_per_lane = 0);
    template <bool writes>
    void touch_line(Access& access, Line& line, std::uint32_t begin, std::uint32_t end, LaneOfWord lane);
    template <bool writes>
    bool touch_alike(Access& access, State& state, std::uint32_t begin, std::uint32_t end);
    template <bool writes>
    void touch_words(Access& access, std::uint32_t begin, std::uint32_t end, LaneOfWord lane);
    template <bool writes>
    void touch_word(Access& access, std::uint32_t word, std::uint16_t bytes, unsigned lane);
    template <bool writes>
    void step(Access& access, State& state, std::uint32_t word, std::uint16_t bytes);

    [[nodiscard]] bool begin_reads(Agent warp, LaneMask lanes);
    void enter_interval();
    void enter_reads();
    /// If there may be reads of these lines in the log.
    void enter_reads_of(const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size);
    /// An access that is not in the log.
    void note_entered(Agent agent, std::uint32_t begin, std::uint32_t end);
    /// Returns true if all words from the first to the last offset are in early_words_.
    [[nodiscard]] bool is_early_row(const LaneOffsets& offsets, std::uint32_t size, std::uint32_t first_line,
                                    std::uint32_t last_line) const noexcept
    {
        const std::uint32_t* const words = early_words_.data();
        if (offsets.near_words != 0) {
            const std::uint64_t needed = std::uint64_t{offsets.near_words} << (offsets.low / 4 % line_words);
            return ((std::uint64_t{words[last_line]} << 32 | words[first_line]) & needed) == needed;
        }
        const std::uint32_t from = ~0U << (offsets.low / 4 % line_words);
        const std::uint32_t to = ~0U >> (line_words - 1 - (offsets.high + size - 1) / 4 % line_words);
        if (first_line == last_line) {
            return (~words[first_line] & from & to) == 0;
        }
        std::uint32_t missing = (~words[first_line] & from) | (~words[last_line] & to);
        for (std::uint32_t line = first_line + 1; line < last_line; ++line) {
            missing |= ~words[line];
        }
        return missing == 0;
    }
    [[nodiscard]] bool are_early(const LaneOffsets& offsets, std::uint32_t size);
    void add_entered(std::uint32_t first_line, std::uint32_t last_line)
    {
        entered_.add(first_line, last_line);
        std::fill(early_words_.begin() + first_line, early_words_.begin() + last_line + 1, 0);
    }
    void learn_written(std::uint32_t line);
    void compare_early(Agent warp, const LaneOffsets& offsets, LaneMask lanes, std::uint32_t size,
                       const ReadSite& site);

    template <bool writes>
    void check_lane(Access& access, std::uint32_t offset, std::uint32_t size, unsigned lane);
    template <bool writes>
    void check_differing_lanes(Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size);
    void check_foreign_writer(Access& access, const State& state, std::uint32_t word, unsigned lane, bool writes);
    void check_foreign_readers(Access& access, const State& state, std::uint32_t word, unsigned lane);
    template <bool writes>
    void check_lanes(Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size);
    /// The lane of each word matters, because lanes of its writer may not have fenced or released.
    [[nodiscard]] bool is_by_lane(const Access& access, Mark writer, bool writes) const noexcept
    {
        return (!writes && access.proxy == Proxy::async && !is_async_proxy(writer)) ||
               clocks_.releases_by_lane(epoch_of(writer).agent);
    }
    /// A store over what other lanes of the warp have read.
    void check_reads(Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size);
    void note_write(Agent agent, LaneMask lanes)
    {
        if (!clocks_.is_async(agent)) {
            clocks_.note_write(agent, lanes);
        }
    }
    void add_lane_reads(const Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size);
    void note_read(const Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size);
    void check_writer(Access& access, const State& state, std::uint32_t word, std::uint16_t bytes, bool writes);
    void check_readers(Access& access, const State& state, std::uint32_t offset);
    void check_pending(Access& access, std::uint32_t begin, std::uint32_t end, bool writes);
    std::uint16_t site(const char* what, std::uint32_t line);
    template <typename Text>
    void find(Access& access, FindingKind kind, Mark other, Text&& text) const
    {
        find_at(access, kind, sites_[site_of(other)].line, text);
    }
    template <typename Text>
    static void find_at(Access& access, FindingKind kind, std::uint32_t line, Text&& text)
    {
        const bool known = access.known != nullptr && access.known->knows(kind, line);
        access.found = ShadowFinding{kind, known ? std::string() : text(), line};
    }
    [[nodiscard]] std::string name(const Access& access, std::uint32_t offset, bool writes) const;
    [[nodiscard]] std::string name(Mark mark, bool writes) const;

    [[nodiscard]] State current(std::uint32_t word) const noexcept
    {
        const Line& line = lines_[word / line_words];
        return line.uniform ? line.state : state_of(word);
    }
    /// Where the line is not uniform.
    [[nodiscard]] State state_of(std::uint32_t word) const noexcept
    {
        return {writer_[word], readers_[word], bits_[word]};
    }
    void set(std::uint32_t word, const State& state) noexcept
    {
        writer_[word] = state.writer;
        readers_[word] = state.readers;
        bits_[word] = state.bits;
    }
    void fill(std::uint32_t begin, std::uint32_t end, const State& state) noexcept;
    void set_lanes(std::uint32_t begin, std::uint32_t end, LaneOfWord lane, bool merge) noexcept;
    [[nodiscard]] bool are_alike(std::uint32_t begin, std::uint32_t end) const noexcept;
    void split(std::uint32_t word) noexcept;
    void collect_readers();
    void note_entered_lanes(Agent agent, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size,
                            std::uint32_t low, std::uint32_t high);
    template <typename Update>
    void update_bits(std::uint32_t begin_word, std::uint32_t end_word, Update&& update);
    static void compare(const std::optional<ShadowFinding>& fast, const std::optional<ShadowFinding>& plain);

    Clocks& clocks_;
    const bool same_value_races_, strict_fences_;
    const bool plain_;
    const std::uint32_t words_;
    std::vector<Line> lines_;
    // By word. Valid where the word's line is not uniform; lanes wherever there is a writer.
    std::unique_ptr<Mark[]> writer_;
    std::unique_ptr<Readers[]> readers_;
    std::unique_ptr<std::uint16_t[]> bits_;
    std::unique_ptr<std::uint8_t[]> lanes_;
    ReaderSets reader_sets_;
    PendingRanges pending_;
    ReadLog log_;
    std::uint32_t interval_ = 1;         // of Clocks, of the log
    std::vector<std::uint32_t> starts_;  // of this interval, by warp
    LineSet entered_;  // lines with accesses of this interval that are not in the log; and all of async_
    LineSet async_;    // lines with accesses of asynchronous operations that some warp does not know
    std::vector<std::uint32_t> async_times_;              // of these accesses, the last by agent
    std::vector<Agent> async_agents_;                     // with a time
    std::vector<std::uint32_t> written_words_;            // by line, a bit for each word; more may be written
    std::vector<std::uint32_t> early_words_;              // the same, but 0 for entered_ lines
    std::vector<std::unique_ptr<LaneReads>> lane_reads_;  // by warp
    std::vector<Site> sites_;
    std::array<std::uint16_t, 256> recent_sites_{};
    std::unique_ptr<SharedShadow> twin_;  // the plain one, of Paths::both
};

}  // namespace tessera::emulator
