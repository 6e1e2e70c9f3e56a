// Races between the lanes of one warp. Only bar.warp.sync and what orders threads of different warps, too, orders them
// (PTX ISA, "bar.warp.sync" and "Memory Consistency Model"): independent threads of a warp may run one after the other.
// shfl.sync, vote.sync, match.sync and the .aligned instructions make lanes wait for each other, but order no accesses.
// So a lane's own wait, for an mbarrier or for its copies, tells the other lanes nothing.
//
// A store over what another lane has *read* counts only if the lanes have not even waited for each other: a value that went
// through a shuffle or a vote has been read.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/windows.hpp"
#include "checks/shared_shadow.hpp"
#include "checks/word_bits.hpp"

namespace tessera::emulator {

template <bool writes>
void SharedShadow::check_lane(Access& access, std::uint32_t offset, std::uint32_t size, unsigned lane)
{
    const std::uint32_t end = std::min(offset + size, words_ * 4);
    for (std::uint32_t word = offset / 4; word * 4 < end && !access.found; ++word) {
        const State state = current(word);
        const Epoch written = epoch_of(state.writer);
        const std::uint16_t bytes = bytes_of_word(word, offset, end);
        if (writes && (state.bits & (bytes << read_shift)) != 0) {
            check_foreign_readers(access, state, word, lane);
        }
        if (state.writer == 0 || (state.bits & (bytes << written_shift)) == 0 ||
            (access.atomic && is_atomic(state.writer)) || access.found) {
            continue;
        }
        if (written.agent != access.agent) {
            check_foreign_writer(access, state, word, lane, writes);
            continue;
        }
        const unsigned writer = lanes_[word];
        if (writer >= warp_size || clocks_.lanes_ordered(access.agent, written.time, writer, lane)) {
            continue;
        }
        // Lanes that a branch has separated execute the same store one after the other. That is no other case than one
        // store of several lanes to one place: PTX leaves open which of them comes last.
        if (writes &&
            (site_of(state.writer) == site_of(access.self) ||
             (access.stored != nullptr && access.stored->unchanged(word * 4, static_cast<std::uint8_t>(bytes))))) {
            continue;
        }
        find(access, FindingKind::shared_race, state.writer, [&] {
            const Site& at = sites_[site_of(state.writer)];
            return fmt::format(
                "{} (lane {} of warp {} of the cluster) {} shared 0x{:x}, but {} (lane {} of the same warp, PTX line "
                "{}) "
                "wrote it, with no __syncwarp() or other synchronization between the two: lanes of a warp are not in "
                "step by themselves",
                access.what, lane, access.agent, writes ? "writes" : "reads", shared_base + word * 4, at.what, writer,
                at.line);
        });
    }
}

/// The writer is not of this warp. What the warp as a whole does not know either is not for here.
void SharedShadow::check_foreign_writer(Access& access, const State& state, std::uint32_t word, unsigned lane,
                                        bool writes)
{
    const Epoch written = epoch_of(state.writer);
    if (!clocks_.ordered(written, access.agent) || clocks_.lane_knows(access.agent, lane, written, lanes_[word])) {
        return;
    }
    const bool async = clocks_.is_async(written.agent);
    const FindingKind kind = !async   ? FindingKind::shared_race
                             : writes ? FindingKind::stage_overwritten
                                      : FindingKind::async_read_pending;
    find(access, kind, state.writer, [&] {
        return fmt::format(
            "{} by lane {}, but {}, and only other lanes of the warp have waited for it: execute __syncwarp() after "
            "the wait",
            name(access, word * 4, writes), lane, name(state.writer, true));
    });
}

void SharedShadow::check_foreign_readers(Access& access, const State& state, std::uint32_t word, unsigned lane)
{
    const Mark read = reader_sets_.first_conflict(state.readers, [&](Mark mark) {
        const Epoch epoch = epoch_of(mark);
        return epoch.agent != access.agent && !(access.atomic && is_atomic(mark)) &&
               clocks_.ordered(epoch, access.agent) && !clocks_.lane_knows(access.agent, lane, epoch, Clocks::any_lane);
    });
    if (read == 0) {
        return;
    }
    const bool async = clocks_.is_async(epoch_of(read).agent);
    find(access, async ? FindingKind::stage_overwritten : FindingKind::shared_race, read, [&] {
        return fmt::format(
            "{} by lane {}, but {}, and only other lanes of the warp have waited for it: execute __syncwarp() after "
            "the wait",
            name(access, word * 4, true), lane, name(read, false));
    });
}

template <bool writes>
void SharedShadow::check_differing_lanes(Access& access, const std::uint32_t* offsets, LaneMask lanes,
                                         std::uint32_t size)
{
    const std::uint32_t together = clocks_.lanes_together(access.agent);
    const bool stale = clocks_.some_lanes_are_stale(access.agent);
    const auto is_fresh = [&](Mark writer) {
        const Epoch written = epoch_of(writer);
        const bool own = written.agent == access.agent, since = written.time >= together;
        return (own & since) | clocks_.is_async(written.agent);  // without branches
    };
    if (!stale && size == 4 && lanes == all_lanes) {  // usual: nobody has written there
        std::array<std::uint32_t, warp_size> words{};
        bool any = false;
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            words[lane] = std::min(offsets[lane] / 4, words_ - 1);
            any |= lines_[words[lane] / line_words].uniform;
        }
        if (!any) {
            for (const std::uint32_t word : words) {
                any |= is_fresh(writer_[word]);
            }
        }
        if (!any) {
            return;
        }
    }
    for_each_lane(lanes, [&](unsigned lane) {
        bool fresh = stale;  // or this warp has written there, or copied, since all lanes synchronized
        for (std::uint32_t word = offsets[lane] / 4; word < std::min((offsets[lane] + size + 3) / 4, words_); ++word) {
            const Line& line = lines_[word / line_words];
            fresh = fresh || is_fresh(line.uniform ? line.state.writer : writer_[word]);
        }
        if (fresh) {
            check_lane<writes>(access, offsets[lane], size, lane);
        }
    });
}

template <bool writes>
void SharedShadow::check_lanes(Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size)
{
    if (clocks_.is_async(access.agent)) {
        return;
    }
    if (clocks_.lanes_differ(access.agent)) {
        check_differing_lanes<writes>(access, offsets, lanes, size);
    }
    if (writes && !access.found && !access.atomic) {
        check_reads(access, offsets, lanes, size);
    }
}

void SharedShadow::note_read(const Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size)
{
    if (!access.atomic && !clocks_.is_async(access.agent)) {
        enter_reads_of(offsets, lanes, size);  // they came before
        add_lane_reads(access, offsets, lanes, size);
    }
}

void SharedShadow::add_lane_reads(const Access& access, const std::uint32_t* offsets, LaneMask lanes,
                                  std::uint32_t size)
{
    if (lane_reads_.size() <= access.agent) {
        lane_reads_.resize(access.agent + std::size_t{1});
    }
    std::unique_ptr<LaneReads>& reads = lane_reads_[access.agent];
    if (reads == nullptr) {
        reads = std::make_unique<LaneReads>();
    }
    reads->read(clocks_.meetings(access.agent), offsets, lanes, size, static_cast<std::uint16_t>(site_of(access.self)));
}

void SharedShadow::check_reads(Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size)
{
    enter_reads_of(offsets, lanes, size);
    LaneReads* const reads = access.agent < lane_reads_.size() ? lane_reads_[access.agent].get() : nullptr;
    if (reads == nullptr || !reads->any(clocks_.meetings(access.agent))) {
        return;
    }
    reads->enter();
    for_each_lane(lanes, [&](unsigned lane) {
        const std::uint32_t end = std::min(offsets[lane] + size, words_ * 4);
        for (std::uint32_t word = offsets[lane] / 4; word * 4 < end && !access.found; ++word) {
            const auto bytes = static_cast<std::uint8_t>(bytes_of_word(word, offsets[lane], end));
            const LaneReads::Conflict read = reads->conflict(word, bytes, lane);
            if (read.lane >= warp_size || (access.stored != nullptr && access.stored->unchanged(word * 4, bytes))) {
                continue;
            }
            find(access, FindingKind::shared_race, Mark{read.site}, [&] {
                const Site& at = sites_[read.site];
                return fmt::format(
                    "{} (lane {} of warp {} of the cluster) writes shared 0x{:x}, but {} (lane {} of the same warp, "
                    "PTX "
                    "line {}) read it, with no __syncwarp() or other synchronization between the two: lanes of a warp "
                    "are not in step by themselves",
                    access.what, lane, access.agent, shared_base + word * 4, at.what, read.lane, at.line);
            });
        }
    });
}

template void SharedShadow::check_lanes<false>(Access&, const std::uint32_t*, LaneMask, std::uint32_t);
template void SharedShadow::check_lanes<true>(Access&, const std::uint32_t*, LaneMask, std::uint32_t);

}  // namespace tessera::emulator
