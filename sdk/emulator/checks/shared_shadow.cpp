#include "checks/shared_shadow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "checks/word_bits.hpp"

namespace tessera::emulator {

namespace {

/// The lanes that do not continue at their predecessor's end; if `repeats`, nor repeat its address.
LaneMask run_starts(const std::uint32_t* offsets, std::uint32_t size, bool repeats) noexcept
{
    const std::uint32_t same = repeats ? 0 : size;
    LaneMask starts = 1;
    for (unsigned lane = 1; lane < warp_size; ++lane) {
        const std::uint32_t distance = offsets[lane] - offsets[lane - 1];
        starts |= static_cast<LaneMask>((distance != size) & (distance != same)) << lane;
    }
    return starts;
}

}  // namespace

SharedShadow::SharedShadow(std::uint32_t bytes, Clocks& clocks, bool same_value_races, Paths paths, bool strict_fences)
    : clocks_(clocks),
      same_value_races_(same_value_races),
      strict_fences_(strict_fences),
      plain_(paths == Paths::plain),
      words_((bytes + 3) / 4),
      lines_((words_ + line_words - 1) / line_words),
      // Written before they are read: split() fills the first three, and a word with a writer has its lane.
      writer_(std::make_unique_for_overwrite<Mark[]>(lines_.size() * line_words)),
      readers_(std::make_unique_for_overwrite<Readers[]>(lines_.size() * line_words)),
      bits_(std::make_unique_for_overwrite<std::uint16_t[]>(lines_.size() * line_words)),
      lanes_(std::make_unique_for_overwrite<std::uint8_t[]>(lines_.size() * line_words)),
      reader_sets_(clocks),
      pending_(bytes),
      log_(lines_.size()),
      starts_(clocks.interval_starts()),
      entered_(lines_.size()),
      async_(lines_.size()),
      written_words_(lines_.size()),
      early_words_(lines_.size())
{
    sites_.push_back({"an earlier access", 0});  // for accesses beyond what a mark can number
    if (plain_) {
        for (std::uint32_t word = 0; word < words_; word += line_words) {
            split(word);
        }
    }
    if (paths == Paths::both) {
        twin_ = std::make_unique<SharedShadow>(bytes, clocks, same_value_races, Paths::plain, strict_fences);
    }
}

SharedShadow::Access SharedShadow::start(Agent agent, Proxy proxy, const char* what, std::uint32_t line, bool atomic)
{
    if (reader_sets_.should_collect()) {
        collect_readers();
    }
    Access access;
    access.agent = agent;
    access.proxy = proxy;
    access.atomic = atomic;
    access.what = what;
    access.line = line;
    access.self = (Mark{clocks_.now(agent).time} << 32) | (Mark{agent} << 16) |
                  (proxy == Proxy::async ? proxy_bit : 0) | (atomic ? atomic_bit : 0) | site(what, line);
    return access;
}

void SharedShadow::collect_readers()
{
    reader_sets_.collect([&](auto&& use) {
        for (std::uint32_t i = 0; i < lines_.size(); ++i) {
            if (lines_[i].uniform) {
                use(lines_[i].state.readers);
            } else {
                for (std::uint32_t word = i * line_words; word < (i + 1) * line_words; ++word) {
                    use(readers_[word]);
                }
            }
        }
    });
}

void SharedShadow::fill(std::uint32_t begin, std::uint32_t end, const State& state) noexcept
{
    std::fill_n(&writer_[begin], end - begin, state.writer);
    std::fill_n(&readers_[begin], end - begin, state.readers);
    std::fill_n(&bits_[begin], end - begin, state.bits);
}

/// The line of this word gets a state for each word.
void SharedShadow::split(std::uint32_t word) noexcept
{
    const std::uint32_t line = word / line_words;
    if (lines_[line].uniform) {
        lines_[line].uniform = false;
        fill(line * line_words, (line + 1) * line_words, lines_[line].state);
    }
}

bool SharedShadow::are_alike(std::uint32_t begin, std::uint32_t end) const noexcept
{
    const State first = state_of(begin);
    Mark writers = 0;
    Readers readers = 0;
    unsigned bits = 0;
    for (std::uint32_t word = begin; word < end; ++word) {
        writers |= writer_[word] ^ first.writer;
    }
    for (std::uint32_t word = begin; word < end; ++word) {
        readers |= readers_[word] ^ first.readers;
    }
    for (std::uint32_t word = begin; word < end; ++word) {
        bits |= static_cast<unsigned>(bits_[word] ^ first.bits);
    }
    return writers == 0 && readers == 0 && bits == 0;
}

/// `merge`: the same access wrote the words before. Several lanes of one word are not distinguished.
void SharedShadow::set_lanes(std::uint32_t begin, std::uint32_t end, LaneOfWord lane, bool merge) noexcept
{
    for (std::uint32_t word = begin; word < end; ++word) {
        const std::uint8_t now = lane(word);
        lanes_[word] = !merge || lanes_[word] == now ? now : static_cast<std::uint8_t>(Clocks::any_lane);
    }
}

/// The rules, for one word: checks the access unless it has a finding, and changes the state.
template <bool writes>
inline void SharedShadow::step(Access& access, State& state, std::uint32_t word, std::uint16_t bytes)
{
    const auto written = static_cast<std::uint16_t>(bytes << written_shift);
    const auto read = static_cast<std::uint16_t>(bytes << read_shift);
    if (state.writer != 0 && (state.bits & written) != 0 && !access.found &&
        !access.is_good(state.writer, lanes_[word])) {
        check_writer(access, state, word, bytes, writes);
    }
    if constexpr (writes) {
        if ((state.bits & read) != 0 && state.readers != access.good_readers && !access.found) {
            check_readers(access, state, word * 4);
        }
        if ((state.bits & is_barrier) != 0 && !access.found) {
            find_at(access, FindingKind::barrier_misuse, 0, [&] {
                return fmt::format(
                    "{}, where an mbarrier is: execute mbarrier.inval before this memory is used for something else",
                    name(access, word * 4, true));
            });
        }
        const unsigned kept = state.writer == access.self ? state.bits : state.bits & ~unsigned{all_written};
        state.bits = static_cast<std::uint16_t>((kept | written | bytes) & ~unsigned{read});
        state.writer = access.self;
        state.readers = (state.bits & all_read) == 0 ? 0 : state.readers;
    } else {
        if ((state.bits & bytes) == bytes) {
            // the usual case: initialized
        } else if (access.unwritten != nullptr) {
            *access.unwritten = true;
        } else if (!access.found) {
            find_at(access, FindingKind::uninitialized_shared, 0,
                    [&] { return fmt::format("{}, which was never written", name(access, word * 4, false)); });
        }
        const unsigned others = state.bits & ~unsigned{all_read};
        if (reader_sets_.is_like(state.readers, access.self)) {
            state.bits |= read;
        } else if ((state.bits & read) == 0) {
            if (access.alone == 0) {
                access.alone = reader_sets_.single(access.self, access.earlier);
            }
            state.readers = access.alone;
            state.bits = static_cast<std::uint16_t>(others | read);
        } else {
            if (state.readers != access.readers_before) {
                access.readers_before = state.readers;
                access.readers_after = reader_sets_.add(state.readers, access.self, access.earlier);
            }
            state.readers = access.readers_after;
            state.bits = reader_sets_.is_single(state.readers)
                             ? static_cast<std::uint16_t>(others | read)
                             : static_cast<std::uint16_t>(others | (state.bits & read));
        }
    }
}

template <bool writes>
void SharedShadow::touch_word(Access& access, std::uint32_t word, std::uint16_t bytes, unsigned lane)
{
    const State before = current(word);
    State state = before;
    step<writes>(access, state, word, bytes);
    if (!writes && state == before) {
        return;
    }
    split(word);
    set(word, state);
    if constexpr (writes) {
        const bool other_lane = before.writer == access.self && lanes_[word] != lane;
        lanes_[word] = static_cast<std::uint8_t>(other_lane ? Clocks::any_lane : lane);
    }
}

/// Checks an access to words that are all in `state`, and changes it. Returns false if the words must be checked one by
/// one.
template <bool writes>
bool SharedShadow::touch_alike(Access& access, State& state, std::uint32_t begin, std::uint32_t end)
{
    const State before = state;
    const bool had_finding = access.found.has_value();
    step<writes>(access, state, begin, all_bytes);
    if (had_finding || before.writer == 0 || (before.bits & all_written) == 0) {
        return true;
    }
    if constexpr (writes) {
        // The first word's value is stored without a change, so there is no finding yet.
        if (access.stored != nullptr && !access.found && !access.is_good(before.writer, lanes_[begin])) {
            return false;
        }
    }
    if (is_by_lane(access, before.writer, writes)) {
        for (std::uint32_t word = begin + 1; word < end && !access.found; ++word) {
            if (!access.is_good(before.writer, lanes_[word])) {
                check_writer(access, before, word, all_bytes, writes);
            }
        }
    }
    return true;
}

/// Words of one line that is not uniform.
template <bool writes>
void SharedShadow::touch_words(Access& access, std::uint32_t begin, std::uint32_t end, LaneOfWord lane)
{
    constexpr std::uint32_t piece = 8;
    if (end - begin > 2 && are_alike(begin, end)) {
        State state = state_of(begin);
        const Mark writer = state.writer;
        if (touch_alike<writes>(access, state, begin, end)) {
            fill(begin, end, state);
            if constexpr (writes) {
                set_lanes(begin, end, lane, writer == access.self);
            }
            return;
        }
    } else if (end - begin > piece) {
        for (std::uint32_t word = begin; word < end; word += piece) {
            touch_words<writes>(access, word, std::min(word + piece, end), lane);
        }
        return;
    }
    for (std::uint32_t word = begin; word < end; ++word) {
        touch_word<writes>(access, word, all_bytes, lane(word));
    }
}

/// Words of one line.
template <bool writes>
void SharedShadow::touch_line(Access& access, Line& line, std::uint32_t begin, std::uint32_t end, LaneOfWord lane)
{
    const bool whole = end - begin == line_words;
    const auto fold = [&] {
        if (!line.uniform && whole && are_alike(begin, end)) {
            line = {state_of(begin), true};
        }
    };
    fold();
    if (!line.uniform) {
        touch_words<writes>(access, begin, end, lane);
        if (writes) {
            fold();
        }
        return;
    }
    State state = line.state;
    if (!touch_alike<writes>(access, state, begin, end)) {
        split(begin);
        touch_words<writes>(access, begin, end, lane);
        return;
    }
    if constexpr (writes) {
        set_lanes(begin, end, lane, line.state.writer == access.self);
    }
    if (whole) {
        line.state = state;
    } else if (writes || state != line.state) {
        split(begin);
        fill(begin, end, state);
    }
}

template <bool writes>
void SharedShadow::touch(Access& access, std::uint32_t offset, std::uint32_t size, unsigned first_lane,
                         unsigned bytes_per_lane)
{
    const auto end = static_cast<std::uint32_t>(std::min(std::uint64_t{offset} + size, std::uint64_t{words_} * 4));
    if (offset >= end) {
        return;
    }
    if (!plain_ && access.earlier == nullptr) {
        note_entered(access.agent, offset, end);
    }
    if (pending_.may_overlap(offset, end) && !access.found) {
        check_pending(access, offset, end, writes);
    }
    const LaneOfWord lane{offset / 4, first_lane,
                          bytes_per_lane == 0 ? 31U : static_cast<unsigned>(std::countr_zero(bytes_per_lane / 4))};
    const std::uint32_t first_whole = (offset + 3) / 4, last_whole = end / 4;
    if (plain_ || first_whole >= last_whole || last_whole - first_whole == 1) {
        for (std::uint32_t word = offset / 4; word <= (end - 1) / 4; ++word) {
            touch_word<writes>(access, word, bytes_of_word(word, offset, end), lane(word));
        }
        return;
    }
    if (offset % 4 != 0) {
        touch_word<writes>(access, offset / 4, bytes_of_word(offset / 4, offset, end), first_lane);
    }
    for (std::uint32_t word = first_whole; word < last_whole;) {
        const std::uint32_t line = word / line_words, stop = std::min((line + 1) * line_words, last_whole);
        touch_line<writes>(access, lines_[line], word, stop, lane);
        word = stop;
    }
    if (end % 4 != 0) {
        touch_word<writes>(access, last_whole, bytes_of_word(last_whole, offset, end), first_lane);
    }
}

/// Whole words anywhere, all in the same state. Returns false, and has checked and changed nothing, if they are not.
template <bool writes>
bool SharedShadow::touch_scattered(Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size)
{
    const auto [low, high] = bounds_of(offsets, lanes);
    const bool one_each = lanes == all_lanes && size == 4;
    const auto each_word = [&](auto&& body) {
        if (one_each) {
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                body(offsets[lane] / 4, lane);
            }
            return;
        }
        for_each_lane(lanes, [&](unsigned lane) {
            for (std::uint32_t word = offsets[lane] / 4; word < (offsets[lane] + size) / 4; ++word) {
                body(word, lane);
            }
        });
    };
    if ((high + size) / 4 > words_) {
        return false;
    }
    if (pending_.may_overlap(low, high + size) && pending_.conflicts(access.agent, offsets, lanes, size, writes)) {
        return false;
    }
    const std::uint32_t first = offsets[std::countr_zero(lanes)] / 4;
    if (access.earlier == nullptr) {
        note_entered_lanes(access.agent, offsets, lanes, size, low, high);
    }
    const State before = current(first);
    bool uniform = false;
    each_word([&](std::uint32_t word, unsigned) { uniform |= lines_[word / line_words].uniform; });
    bool alike = true;
    if (uniform) {
        each_word([&](std::uint32_t word, unsigned) { alike = alike && current(word) == before; });
    } else {
        Mark writers = 0;
        Readers readers = 0;
        unsigned bits = 0;
        each_word([&](std::uint32_t word, unsigned) {
            writers |= writer_[word] ^ before.writer;
            readers |= readers_[word] ^ before.readers;
            bits |= static_cast<unsigned>(bits_[word] ^ before.bits);
        });
        alike = writers == 0 && readers == 0 && bits == 0;
    }
    State state = before;
    if (!alike || access.found || (before.writer != 0 && is_by_lane(access, before.writer, writes)) ||
        !touch_alike<writes>(access, state, first, first + 1)) {
        return false;
    }
    if (!writes && state == before) {
        return true;
    }
    const bool other_writer = writes && before.writer != access.self;
    each_word([&](std::uint32_t word, unsigned lane) {
        if (uniform) [[unlikely]] {
            split(word);
        }
        set(word, state);
        if (other_writer) {
            lanes_[word] = static_cast<std::uint8_t>(lane);
        }
    });
    if constexpr (writes) {
        each_word([&](std::uint32_t word, unsigned lane) {  // several lanes of one word are not distinguished
            lanes_[word] = lanes_[word] == lane ? lanes_[word] : static_cast<std::uint8_t>(Clocks::any_lane);
        });
    }
    return true;
}

/// Whole words, in runs of lanes that continue each other. A read of what the run before it read changes nothing.
template <bool writes>
void SharedShadow::touch_runs(Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size)
{
    // A lane begins a run, too, if its predecessor is not active.
    const LaneMask starts = lanes & (run_starts(offsets, size, !writes) | ~(lanes << 1U));
    constexpr int many = 12;
    if (std::popcount(starts) >= many && touch_scattered<writes>(access, offsets, lanes, size)) {
        return;
    }
    std::uint32_t last_begin = 0, last_end = 0;
    for_each_lane(starts, [&](unsigned first) {
        const LaneMask stops = (starts | ~lanes) & ~((LaneMask{2} << first) - 1);
        const unsigned last = (stops == 0 ? warp_size : static_cast<unsigned>(std::countr_zero(stops))) - 1;
        const std::uint32_t begin = offsets[first], end = offsets[last] + size;
        if (!writes && begin >= last_begin && end <= last_end) {
            return;
        }
        last_begin = begin;
        last_end = end;
        if (pending_.may_overlap(begin, std::max(begin + 1, end)) &&
            pending_.first_conflict(access.agent, begin, end, writes) != nullptr) {
            for (unsigned lane = first; lane <= last; ++lane) {
                touch<writes>(access, offsets[lane], size, lane);
            }
        } else {
            touch<writes>(access, begin, end - begin, first, size);
        }
    });
}

template <bool writes>
std::optional<ShadowFinding> SharedShadow::touch_lanes(Access& access, const std::uint32_t* offsets, LaneMask lanes,
                                                       std::uint32_t size)
{
    const std::uint32_t base = offsets[std::countr_zero(lanes)];
    std::uint32_t unlike_row = 0, unlike_broadcast = 0, all = 0;
    for (std::uint32_t i = 0; i < warp_size; ++i) {
        unlike_row |= offsets[i] ^ (base + i * size);
        unlike_broadcast |= offsets[i] ^ base;
        all |= offsets[i];
    }
    if (lanes == all_lanes && unlike_row == 0) {
        const bool words = size >= 4 && base % 4 == 0;  // lanes that share a word are not distinguished
        touch<writes>(access, base, size * warp_size, words ? 0 : Clocks::any_lane, words ? size : 0);
    } else if (lanes == all_lanes && unlike_broadcast == 0) {
        touch<writes>(access, base, size, Clocks::any_lane);
    } else if (!plain_ && (size | all) % 4 == 0) {
        touch_runs<writes>(access, offsets, lanes, size);
    } else {
        for_each_lane(lanes, [&](unsigned lane) { touch<writes>(access, offsets[lane], size, lane); });
    }
    return std::move(access.found);
}

std::optional<ShadowFinding> SharedShadow::read(Agent agent, std::uint32_t offset, std::uint32_t size, Proxy proxy,
                                                const char* what, std::uint32_t ptx_line, bool atomic, bool* unwritten,
                                                unsigned lane, const KnownFindings* known)
{
    Access access = start(agent, proxy, what, ptx_line, atomic);
    access.unwritten = unwritten;
    access.known = twin_ ? nullptr : known;
    if (lane < warp_size && !clocks_.is_async(agent)) {
        std::array<std::uint32_t, warp_size> offsets{};
        offsets[lane] = offset;
        check_lanes<false>(access, offsets.data(), bit(lane), size);
        note_read(access, offsets.data(), bit(lane), size);
    }
    touch<false>(access, offset, size, Clocks::any_lane);
    if (twin_) {
        compare(access.found, twin_->read(agent, offset, size, proxy, what, ptx_line, atomic, unwritten, lane));
    }
    return std::move(access.found);
}

std::optional<ShadowFinding> SharedShadow::write(Agent agent, std::uint32_t offset, std::uint32_t size, Proxy proxy,
                                                 const char* what, std::uint32_t ptx_line, bool atomic, unsigned lane,
                                                 const KnownFindings* known)
{
    Access access = start(agent, proxy, what, ptx_line, atomic);
    access.known = twin_ ? nullptr : known;
    if (lane < warp_size && !clocks_.is_async(agent)) {
        std::array<std::uint32_t, warp_size> offsets{};
        offsets[lane] = offset;
        check_lanes<true>(access, offsets.data(), bit(lane), size);
        note_write(agent, bit(lane));
    }
    touch<true>(access, offset, size, lane);
    if (twin_) {
        compare(access.found, twin_->write(agent, offset, size, proxy, what, ptx_line, atomic, lane));
    }
    return std::move(access.found);
}

std::optional<ShadowFinding> SharedShadow::read_lanes(Agent warp, const std::uint32_t* offsets, LaneMask lanes,
                                                      std::uint32_t size, const char* what, std::uint32_t ptx_line,
                                                      bool atomic, bool* unwritten, const KnownFindings* known)
{
    Access access = start(warp, Proxy::generic, what, ptx_line, atomic);
    access.unwritten = unwritten;
    access.known = twin_ ? nullptr : known;
    check_lanes<false>(access, offsets, lanes, size);
    note_read(access, offsets, lanes, size);
    auto found = touch_lanes<false>(access, offsets, lanes, size);
    if (twin_) {
        compare(found, twin_->read_lanes(warp, offsets, lanes, size, what, ptx_line, atomic, unwritten));
    }
    return found;
}

std::optional<ShadowFinding> SharedShadow::write_lanes(Agent warp, const std::uint32_t* offsets, LaneMask lanes,
                                                       std::uint32_t size, const char* what, std::uint32_t ptx_line,
                                                       bool atomic, const StoredBytes* stored,
                                                       const KnownFindings* known)
{
    Access access = start(warp, Proxy::generic, what, ptx_line, atomic);
    access.stored = stored;
    access.known = twin_ ? nullptr : known;
    check_lanes<true>(access, offsets, lanes, size);
    note_write(warp, lanes);
    auto found = touch_lanes<true>(access, offsets, lanes, size);
    if (twin_) {
        compare(found, twin_->write_lanes(warp, offsets, lanes, size, what, ptx_line, atomic, stored));
    }
    return found;
}

void SharedShadow::begin(Agent async, std::uint32_t offset, std::uint32_t size, bool writes, const char* what,
                         std::uint32_t ptx_line)
{
    const std::uint64_t limit = std::uint64_t{words_} * 4;
    if (size == 0 || offset >= limit) {
        return;
    }
    const auto range_end = static_cast<std::uint32_t>(std::min(std::uint64_t{offset} + size, limit));
    if (!plain_) {
        note_entered(async, offset, range_end);
    }
    pending_.begin(async, offset, range_end, writes, what, ptx_line);
    if (twin_) {
        twin_->begin(async, offset, size, writes, what, ptx_line);
    }
}

void SharedShadow::begin_lanes(Agent async, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size,
                               const char* what, std::uint32_t ptx_line)
{
    if (!plain_) {
        const auto [low, high] = bounds_of(offsets, lanes);
        note_entered_lanes(async, offsets, lanes, size, low, high);
        pending_.begin_lanes(async, offsets, lanes, size, what, ptx_line);
        if (twin_) {
            twin_->begin_lanes(async, offsets, lanes, size, what, ptx_line);
        }
        return;
    }
    std::vector<std::uint32_t> begins;
    for_each_lane(lanes, [&](unsigned lane) { begins.push_back(offsets[lane]); });
    std::ranges::sort(begins);
    for (std::size_t i = 0; i < begins.size();) {
        const std::uint32_t start = begins[i];
        std::uint32_t end = start;
        for (; i < begins.size() && begins[i] <= end; ++i) {
            end = begins[i] + size;
        }
        begin(async, start, end - start, true, what, ptx_line);
    }
}

void SharedShadow::end(Agent async)
{
    pending_.end(async);
    if (twin_) {
        twin_->end(async);
    }
}

}  // namespace tessera::emulator
