#include "checks/shared_shadow.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "base/windows.hpp"

namespace tessera::emulator {

namespace {

constexpr std::uint8_t whole_word = 0xF;

constexpr Epoch epoch_of(std::uint64_t mark) noexcept
{
    return {static_cast<Agent>(mark >> 16), static_cast<std::uint32_t>(mark >> 32)};
}

constexpr unsigned site_bits = 14;
constexpr std::uint64_t atomic_bit = std::uint64_t{1} << site_bits, proxy_bit = atomic_bit << 1;

constexpr std::size_t site_of(std::uint64_t mark) noexcept { return mark & (atomic_bit - 1); }
constexpr bool is_atomic(std::uint64_t mark) noexcept { return (mark & atomic_bit) != 0; }
constexpr bool is_async_proxy(std::uint64_t mark) noexcept { return (mark & proxy_bit) != 0; }
/// True for the same agent at the same time in the same way, perhaps by another instruction.
constexpr bool alike(std::uint64_t a, std::uint64_t b) noexcept { return (a ^ b) >> site_bits == 0; }

constexpr bool is_set(std::uint64_t mark) noexcept { return mark != 0 && (mark >> 32) == 0; }

// Bits of the bytes of word `word` that are in [begin, end).
constexpr std::uint8_t bytes_of_word(std::uint32_t word, std::uint32_t begin, std::uint32_t end) noexcept
{
    const std::uint32_t first = std::max(word * 4, begin) - word * 4;
    const std::uint32_t last = std::min(word * 4 + 4, end) - word * 4;
    return static_cast<std::uint8_t>((whole_word << first) & (whole_word >> (4 - last)));
}

}  // namespace

struct SharedShadow::Access {
    Agent agent;
    Proxy proxy;
    bool atomic;
    const char* what;
    std::uint32_t line;
    Mark self;
    // Already checked and in order: this writer (if it wrote with one of these lanes), and these readers.
    Mark good_writer = 0;
    std::uint64_t good_lanes = 0;
    Mark good_readers = 0;
    // The last step of add_reader.
    Mark readers_before = 0, readers_after = 0;
    std::optional<ShadowFinding> found;
    bool* unwritten = nullptr;            // of read()
    const StoredBytes* stored = nullptr;  // of write_lanes()
};

SharedShadow::SharedShadow(std::uint32_t bytes, const Clocks& clocks, bool same_value_races)
    : clocks_(clocks),
      same_value_races_(same_value_races),
      cells_((std::size_t{bytes} + 3) / 4),
      pending_in_((bytes >> granule_bits) + std::size_t{1}, 0)
{
    sites_.push_back({"an earlier access", 0});  // for accesses beyond what a mark can number
}

std::uint16_t SharedShadow::site(const char* what, std::uint32_t line)
{
    std::uint16_t& recent = recent_sites_[(line ^ reinterpret_cast<std::uintptr_t>(what) >> 4) % recent_sites_.size()];
    if (sites_[recent].line == line && sites_[recent].what == what) {
        return recent;
    }
    for (std::size_t i = 1; i < sites_.size(); ++i) {
        if (sites_[i].line == line && sites_[i].what == what) {
            return recent = static_cast<std::uint16_t>(i);
        }
    }
    if (sites_.size() >> site_bits != 0) {
        return 0;
    }
    sites_.push_back({what, line});
    return recent = static_cast<std::uint16_t>(sites_.size() - 1);
}

SharedShadow::Access SharedShadow::start(Agent agent, Proxy proxy, const char* what, std::uint32_t line, bool atomic)
{
    if (reader_sets_.size() > set_limit_) {
        drop_unused_sets();
    }
    const Epoch now = clocks_.now(agent);
    Access access{};
    access.agent = agent;
    access.proxy = proxy;
    access.atomic = atomic;
    access.what = what;
    access.line = line;
    access.self = (Mark{now.time} << 32) | (Mark{agent} << 16) | (proxy == Proxy::async ? proxy_bit : 0) |
                  (atomic ? atomic_bit : 0) | site(what, line);
    return access;
}

std::string SharedShadow::name(const Access& access, std::uint32_t offset, bool writes) const
{
    const std::string who = clocks_.is_async(access.agent) ? std::string{"asynchronous work"}
                                                           : fmt::format("warp {} of the cluster", access.agent);
    return fmt::format("{} ({}) {} shared 0x{:x}", access.what, who, writes ? "writes" : "reads", shared_base + offset);
}

std::string SharedShadow::name(Mark mark, bool writes) const
{
    const Site& at = sites_[site_of(mark)];
    const Agent agent = epoch_of(mark).agent;
    const std::string who =
        clocks_.is_async(agent) ? std::string{"asynchronous work"} : fmt::format("warp {} of the cluster", agent);
    return fmt::format("{} ({}, PTX line {}) {}", at.what, who, at.line, writes ? "wrote it" : "read it");
}

void SharedShadow::find(Access& access, FindingKind kind, std::string message)
{
    access.found = ShadowFinding{kind, std::move(message)};
}

void SharedShadow::check_writer(Access& access, const Cell& cell, std::uint32_t offset, std::uint8_t bytes, bool writes)
{
    const Epoch written = epoch_of(cell.writer);
    if (!clocks_.ordered(written, access.agent)) {
        if (access.atomic && is_atomic(cell.writer)) {
            return;
        }
        if (clocks_.is_async(written.agent)) {
            find(access, writes ? FindingKind::stage_overwritten : FindingKind::async_read_pending,
                 fmt::format("{}, but {} and is not known to be complete: wait for its mbarrier or group first",
                             name(access, offset, writes), name(cell.writer, true)));
        } else if (access.stored != nullptr && !access.atomic && !is_atomic(cell.writer) &&
                   access.stored->unchanged(offset, bytes)) {
            if (same_value_races_) {
                find(access, FindingKind::same_value_race,
                     fmt::format("{}, but {} the same value, with no barrier or other synchronization between the two",
                                 name(access, offset, writes), name(cell.writer, true)));
            }
        } else {
            find(access, FindingKind::shared_race,
                 fmt::format("{}, but {}, with no barrier or other synchronization between the two",
                             name(access, offset, writes), name(cell.writer, true)));
        }
        return;
    }
    // A completed asynchronous operation needs no fence; nor does a generic write over a generic one. An async write
    // over a generic one only needs order: every pipeline that reuses its stages does this.
    if (!writes && access.proxy == Proxy::async && !is_async_proxy(cell.writer) &&
        !clocks_.ordered_for_async(written, access.agent, cell.lane)) {
        find(access, FindingKind::missing_proxy_fence,
             fmt::format("{} through the async proxy, but {} through the generic proxy and lane {} executed no "
                         "fence.proxy.async before the synchronization: each writing thread needs one",
                         name(access, offset, writes), name(cell.writer, true),
                         cell.lane < warp_size ? fmt::format("{}", cell.lane) : std::string{"of the writer"}));
        return;
    }
    if (access.good_writer != cell.writer) {
        access.good_writer = cell.writer;
        access.good_lanes = 0;
    }
    // Only the async proxy distinguishes lanes.
    access.good_lanes |= access.proxy == Proxy::async ? std::uint64_t{1} << cell.lane : ~std::uint64_t{0};
}

void SharedShadow::check_readers(Access& access, const Cell& cell, std::uint32_t offset)
{
    const Mark single[] = {cell.reader};
    const bool set = is_set(cell.reader);
    const Mark* const first = set ? reader_sets_[cell.reader - 1].data() : single;
    const std::size_t count = set ? reader_sets_[cell.reader - 1].size() : 1;
    for (std::size_t i = 0; i < count; ++i) {
        const Epoch read = epoch_of(first[i]);
        if ((access.atomic && is_atomic(first[i])) || clocks_.ordered(read, access.agent)) {
            continue;
        }
        if (clocks_.is_async(read.agent)) {
            find(access, FindingKind::stage_overwritten,
                 fmt::format("{}, but {} and is not known to be complete: wait for its commit or group first",
                             name(access, offset, true), name(first[i], false)));
        } else {
            find(access, FindingKind::shared_race,
                 fmt::format("{}, but {}, with no barrier or other synchronization between the two",
                             name(access, offset, true), name(first[i], false)));
        }
        return;
    }
    access.good_readers = cell.reader;
}

void SharedShadow::check_pending(Access& access, std::uint32_t offset, std::uint32_t size, bool writes)
{
    for (const Pending& p : pending_) {
        if (p.async == access.agent || (!writes && !p.writes) || p.offset >= offset + size ||
            offset >= p.offset + p.size) {
            continue;
        }
        std::uint64_t own = next_order_;
        for (const Pending& mine : pending_) {
            if (mine.async == access.agent) {
                own = std::min(own, mine.order);
            }
        }
        // A read of data that is still being written. If the read was issued after the write, the read is too early;
        // else the write is.
        const bool too_early = !writes && p.order < own;
        find(access, too_early ? FindingKind::async_read_pending : FindingKind::stage_overwritten,
             fmt::format("{} while {} (PTX line {}) still {} 0x{:x} to 0x{:x}: wait until it is complete",
                         name(access, std::max(offset, p.offset), writes), p.what, p.line,
                         p.writes ? "writes" : "reads", shared_base + p.offset, shared_base + p.offset + p.size));
        return;
    }
}

SharedShadow::Mark SharedShadow::add_reader(Mark readers, const Access& access)
{
    Extension& known = extensions_[((readers ^ (access.self >> 16)) * 0x9E37'79B9'7F4A'7C15ull) >> 58];
    // What an agent knows changes with its acquires, not only with its clock. So this cache may keep a reader that
    // could be dropped, which is harmless.
    if (known.before == readers && known.by == access.self) {
        return known.after;
    }
    std::vector<Mark> kept;
    const auto keep = [&](Mark mark) {
        // A reader that happened before this one need not be kept: what is ordered after this one is ordered after it,
        // too. Plain reads are kept beside atomic ones, which conflict with less.
        const bool covered = clocks_.ordered(epoch_of(mark), access.agent) && (!access.atomic || is_atomic(mark));
        if (!covered) {
            kept.push_back(mark);
        }
    };
    if (is_set(readers)) {
        std::for_each(reader_sets_[readers - 1].begin(), reader_sets_[readers - 1].end(), keep);
    } else {
        keep(readers);
    }
    Mark after = access.self;
    if (!kept.empty()) {
        kept.insert(std::ranges::lower_bound(kept, access.self), access.self);
        std::uint64_t hash = kept.size();
        for (const Mark mark : kept) {
            hash = (hash ^ mark) * 0x9E37'79B9'7F4A'7C15ull;
            hash ^= hash >> 29;
        }
        const auto [place, fresh] = set_numbers_.try_emplace(hash, reader_sets_.size() + 1);
        if (fresh || reader_sets_[place->second - 1] != kept) {  // same hash, different members: not shared
            reader_sets_.push_back(std::move(kept));
            after = reader_sets_.size();
        } else {
            after = place->second;
        }
    }
    known = {readers, access.self, after};
    return after;
}

void SharedShadow::drop_unused_sets()
{
    std::vector<Mark> renumbered(reader_sets_.size() + 1, 0);
    std::vector<std::vector<Mark>> used;
    for (Cell& cell : cells_) {
        if (is_set(cell.reader)) {
            Mark& number = renumbered[cell.reader];
            if (number == 0) {
                used.push_back(std::move(reader_sets_[cell.reader - 1]));
                number = used.size();
            }
            cell.reader = number;
        }
    }
    reader_sets_ = std::move(used);
    set_numbers_.clear();  // sets that occur again get a new number
    set_limit_ = std::max<std::size_t>(4096, 2 * reader_sets_.size());
    extensions_ = {};
}

template <bool writes>
void SharedShadow::touch_cell(Access& access, Cell& cell, std::uint32_t word, std::uint8_t bytes, unsigned lane)
{
    if (cell.writer != 0 && (cell.written & bytes) != 0 && !access.found &&
        (!alike(cell.writer, access.good_writer) || (access.good_lanes >> cell.lane & 1) == 0)) {
        check_writer(access, cell, word * 4, bytes, writes);
    }
    if constexpr (writes) {
        if ((cell.read & bytes) != 0 && cell.reader != access.good_readers && !access.found) {
            check_readers(access, cell, word * 4);
        }
        if (cell.barrier && !access.found) {
            find(access, FindingKind::barrier_misuse,
                 fmt::format(
                     "{}, where an mbarrier is: execute mbarrier.inval before this memory is used for something else",
                     name(access, word * 4, true)));
        }
        if (cell.writer == access.self) {
            cell.lane = cell.lane == lane ? cell.lane : static_cast<std::uint8_t>(Clocks::any_lane);
            cell.written |= bytes;
        } else {
            cell.writer = access.self;
            cell.lane = static_cast<std::uint8_t>(lane);
            cell.written = bytes;
        }
        cell.initialized |= bytes;
        cell.read = static_cast<std::uint8_t>(cell.read & ~bytes);
        cell.reader = cell.read == 0 ? 0 : cell.reader;
    } else {
        if ((cell.initialized & bytes) == bytes) {
            // the usual case
        } else if (access.unwritten != nullptr) {
            *access.unwritten = true;
        } else if (!access.found) {
            find(access, FindingKind::uninitialized_shared,
                 fmt::format("{}, which was never written", name(access, word * 4, false)));
        }
        if (alike(cell.reader, access.self)) {
            cell.read |= bytes;
        } else if ((cell.read & bytes) == 0) {
            cell.reader = access.self;
            cell.read = bytes;
        } else {
            if (cell.reader != access.readers_before) {
                access.readers_before = cell.reader;
                access.readers_after = add_reader(cell.reader, access);
            }
            cell.reader = access.readers_after;
            cell.read = is_set(cell.reader) ? static_cast<std::uint8_t>(cell.read & bytes) : bytes;
        }
    }
}

template <bool writes>
void SharedShadow::touch(Access& access, std::uint32_t offset, std::uint32_t size, unsigned lane,
                         unsigned bytes_per_lane)
{
    const std::uint32_t end =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(std::uint64_t{offset} + size, cells_.size() * 4));
    if (offset >= end) {
        return;
    }
    for (std::uint32_t g = offset >> granule_bits; !pending_.empty() && g <= (end - 1) >> granule_bits; ++g) {
        if (pending_in_[g] != 0 && !access.found) {
            check_pending(access, offset, end - offset, writes);
            break;
        }
    }
    if ((offset | end) % 4 != 0) {
        for (std::uint32_t word = offset / 4; word <= (end - 1) / 4; ++word) {
            touch_cell<writes>(access, cells_[word], word, bytes_of_word(word, offset, end), lane);
        }
        return;
    }
    // Whole words: usually all are in the same state, and the checks of the first hold for the others.
    std::uint32_t in_lane = 0;
    for (std::uint32_t word = offset / 4; word < end / 4; ++word) {
        Cell& cell = cells_[word];
        const bool good_writer = alike(cell.writer, access.good_writer) && (access.good_lanes >> cell.lane & 1) != 0 &&
                                 cell.initialized == whole_word;
        if constexpr (writes) {
            if (good_writer && (cell.reader == 0 || cell.reader == access.good_readers) && !cell.barrier) {
                cell.writer = access.self;
                cell.reader = 0;
                cell.written = whole_word;
                cell.read = 0;
                cell.lane = static_cast<std::uint8_t>(lane);
            } else {
                touch_cell<true>(access, cell, word, whole_word, lane);
            }
            in_lane += 4;
            if (in_lane == bytes_per_lane) {
                in_lane = 0;
                ++lane;
            }
        } else {
            if (good_writer && cell.read == whole_word) {
                if (alike(cell.reader, access.self)) {
                    continue;
                }
                if (cell.reader == access.readers_before) {
                    cell.reader = access.readers_after;
                    continue;
                }
            }
            touch_cell<false>(access, cell, word, whole_word, lane);
        }
    }
}

template <bool writes>
std::optional<ShadowFinding> SharedShadow::touch_lanes(Access access, const std::uint32_t* offsets, LaneMask lanes,
                                                       std::uint32_t size)
{
    const unsigned first = static_cast<unsigned>(std::countr_zero(lanes));
    const std::uint32_t base = offsets[first];
    if (lanes == all_lanes) {
        std::uint32_t unlike_row = 0, unlike_broadcast = 0;
        for (std::uint32_t i = 0; i < warp_size; ++i) {
            unlike_row |= offsets[i] ^ (base + i * size);
            unlike_broadcast |= offsets[i] ^ base;
        }
        if (unlike_row == 0) {
            // Lanes that share a word are not distinguished.
            const bool words = size >= 4 && base % 4 == 0;
            touch<writes>(access, base, size * warp_size, words ? 0 : Clocks::any_lane, words ? size : 0);
            return std::move(access.found);
        }
        if (unlike_broadcast == 0) {
            touch<writes>(access, base, size, Clocks::any_lane, 0);
            return std::move(access.found);
        }
    }
    for_each_lane(lanes, [&](unsigned lane) { touch<writes>(access, offsets[lane], size, lane, 0); });
    return std::move(access.found);
}

std::optional<ShadowFinding> SharedShadow::read(Agent agent, std::uint32_t offset, std::uint32_t size, Proxy proxy,
                                                const char* what, std::uint32_t ptx_line, bool atomic, bool* unwritten)
{
    Access access = start(agent, proxy, what, ptx_line, atomic);
    access.unwritten = unwritten;
    touch<false>(access, offset, size, Clocks::any_lane, 0);
    return std::move(access.found);
}

std::optional<ShadowFinding> SharedShadow::write(Agent agent, std::uint32_t offset, std::uint32_t size, Proxy proxy,
                                                 const char* what, std::uint32_t ptx_line, bool atomic, unsigned lane)
{
    Access access = start(agent, proxy, what, ptx_line, atomic);
    touch<true>(access, offset, size, lane, 0);
    return std::move(access.found);
}

std::optional<ShadowFinding> SharedShadow::read_lanes(Agent warp, const std::uint32_t* offsets, LaneMask lanes,
                                                      std::uint32_t size, const char* what, std::uint32_t ptx_line,
                                                      bool atomic, bool* unwritten)
{
    Access access = start(warp, Proxy::generic, what, ptx_line, atomic);
    access.unwritten = unwritten;
    return touch_lanes<false>(std::move(access), offsets, lanes, size);
}

std::optional<ShadowFinding> SharedShadow::write_lanes(Agent warp, const std::uint32_t* offsets, LaneMask lanes,
                                                       std::uint32_t size, const char* what, std::uint32_t ptx_line,
                                                       bool atomic, const StoredBytes* stored)
{
    Access access = start(warp, Proxy::generic, what, ptx_line, atomic);
    access.stored = stored;
    return touch_lanes<true>(std::move(access), offsets, lanes, size);
}

void SharedShadow::begin(Agent async, std::uint32_t offset, std::uint32_t size, bool writes, const char* what,
                         std::uint32_t ptx_line)
{
    const std::uint64_t limit = cells_.size() * 4;
    if (size == 0 || offset >= limit) {
        return;
    }
    size = static_cast<std::uint32_t>(std::min<std::uint64_t>(size, limit - offset));
    pending_.push_back({async, writes, offset, size, what, ptx_line, next_order_++});
    for (std::uint32_t g = offset >> granule_bits; g <= (offset + size - 1) >> granule_bits; ++g) {
        ++pending_in_[g];
    }
}

void SharedShadow::end(Agent async)
{
    std::erase_if(pending_, [&](const Pending& p) {
        if (p.async != async) {
            return false;
        }
        for (std::uint32_t g = p.offset >> granule_bits; g <= (p.offset + p.size - 1) >> granule_bits; ++g) {
            --pending_in_[g];
        }
        return true;
    });
}

void SharedShadow::mark_barrier(std::uint32_t offset, bool is_barrier)
{
    for (std::uint32_t word = offset / 4; word < std::min<std::size_t>(offset / 4 + std::size_t{2}, cells_.size());
         ++word) {
        cells_[word].barrier = is_barrier;
        cells_[word].initialized = whole_word;
    }
}

bool SharedShadow::initialized(std::uint32_t offset, std::uint32_t size) const
{
    for (std::uint32_t byte = offset; byte < offset + size; ++byte) {
        if (byte / 4 >= cells_.size() || (cells_[byte / 4].initialized >> (byte % 4) & 1) == 0) {
            return false;
        }
    }
    return true;
}

void SharedShadow::mark_initialized(std::uint32_t offset, std::uint32_t size)
{
    for (std::uint32_t word = offset / 4; size != 0 && word <= (offset + size - 1) / 4 && word < cells_.size();
         ++word) {
        cells_[word].initialized |= bytes_of_word(word, offset, offset + size);
    }
}

std::uint32_t SharedShadow::async_writer_line(std::uint32_t offset) const noexcept
{
    const Mark writer = offset / 4 < cells_.size() ? cells_[offset / 4].writer : 0;
    return is_async_proxy(writer) ? sites_[site_of(writer)].line : 0;
}

}  // namespace tessera::emulator
