// Races between the lanes of one warp. Only bar.warp.sync and what orders threads of different warps, too, orders them
// (PTX ISA, "bar.warp.sync" and "Memory Consistency Model"): independent threads of a warp may run one after the other.
// shfl.sync, vote.sync, match.sync and the .aligned instructions make lanes wait for each other, but order no accesses.

#include <fmt/format.h>

#include <algorithm>

#include "base/windows.hpp"
#include "checks/shared_shadow.hpp"
#include "checks/word_bits.hpp"

namespace tessera::emulator {

void SharedShadow::note_write(Agent agent)
{
    if (clocks_.is_async(agent)) {
        return;
    }
    if (last_writes_.size() <= agent) {
        last_writes_.resize(agent + std::size_t{1}, 0);
    }
    last_writes_[agent] = clocks_.now(agent).time;
}

template <bool writes>
void SharedShadow::check_lane(Access& access, std::uint32_t offset, std::uint32_t size, unsigned lane)
{
    const std::uint32_t end = std::min(offset + size, words_ * 4);
    for (std::uint32_t word = offset / 4; word * 4 < end && !access.found; ++word) {
        const State state = current(word);
        const Epoch written = epoch_of(state.writer);
        const std::uint16_t bytes = bytes_of_word(word, offset, end);
        if (state.writer == 0 || written.agent != access.agent || (state.bits & (bytes << written_shift)) == 0) {
            continue;
        }
        const unsigned writer = lanes_[word];
        if (writer >= warp_size || clocks_.lanes_ordered(access.agent, written.time, writer, lane) ||
            (access.atomic && is_atomic(state.writer))) {
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

template <bool writes>
void SharedShadow::check_lanes(Access& access, const std::uint32_t* offsets, LaneMask lanes, std::uint32_t size)
{
    if (!lanes_may_race(access.agent)) {
        return;
    }
    const std::uint32_t together = clocks_.lanes_together(access.agent);
    for_each_lane(lanes, [&](unsigned lane) {
        bool fresh = false;  // this warp has written there since all lanes synchronized
        for (std::uint32_t word = offsets[lane] / 4; word < std::min((offsets[lane] + size + 3) / 4, words_); ++word) {
            const Line& line = lines_[word / line_words];
            const Epoch written = epoch_of(line.uniform ? line.state.writer : writer_[word]);
            fresh = fresh || (written.agent == access.agent && written.time >= together);
        }
        if (fresh) {
            check_lane<writes>(access, offsets[lane], size, lane);
        }
    });
}

template void SharedShadow::check_lane<false>(Access&, std::uint32_t, std::uint32_t, unsigned);
template void SharedShadow::check_lane<true>(Access&, std::uint32_t, std::uint32_t, unsigned);
template void SharedShadow::check_lanes<false>(Access&, const std::uint32_t*, LaneMask, std::uint32_t);
template void SharedShadow::check_lanes<true>(Access&, const std::uint32_t*, LaneMask, std::uint32_t);

}  // namespace tessera::emulator
