#include "machine/spin_watch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "machine/warp.hpp"

namespace tessera::emulator {

namespace {

// A series of looks, so far apart that they fall on all places of a short loop; then none until twice as many steps have had
// no effect.
constexpr unsigned looks_in_a_row = 64;
constexpr std::uint64_t steps_between_looks = 1021;

std::uint64_t mix(std::uint64_t sum, std::uint64_t word) noexcept
{
    sum = (sum ^ word) * 0x9E37'79B9'7F4A'7C15ull;
    return sum ^ sum >> 32;
}

/// A number made from everything that decides what the warp does next, but for memory.
std::uint64_t state_of(const Warp& warp)
{
    std::uint64_t sum = warp.exited;
    for (const auto& split : warp.splits()) {
        sum = mix(mix(sum, std::uint64_t{split->mask} << 32 | split->pc), split->parked ? 1 : 0);
        for (const Frame* frame = split->frame; frame != nullptr; frame = frame->caller) {
            sum = mix(sum, frame->return_pc);
            const std::byte* const bytes = frame->storage.data();
            for (std::size_t at = 0; at + 8 <= frame->storage.size(); at += 8) {
                std::uint64_t word = 0;
                std::memcpy(&word, bytes + at, sizeof word);
                sum = mix(sum, word);
            }
        }
    }
    return sum;
}

}  // namespace

std::uint64_t SpinWatch::look(const std::vector<Warp*>& warps, std::uint64_t steps, std::uint64_t progress)
{
    const std::uint64_t quiet = steps - progress;
    if (since_ != progress || quiet < quiet_steps) {
        since_ = progress;
        spins_ = false;
        looks_ = 0;
        seen_.clear();
        if (quiet < quiet_steps) {
            return progress + quiet_steps;
        }
    }
    if (looks_ % looks_in_a_row == 0) {
        seen_.assign(warps.size(), {});
    }
    bool all = true;
    for (std::size_t i = 0; i < warps.size(); ++i) {
        if (warps[i]->finished() || seen_[i].repeated) {
            continue;
        }
        const std::uint64_t state = state_of(*warps[i]);
        seen_[i].repeated = std::ranges::find(seen_[i].states, state) != seen_[i].states.end();
        seen_[i].states.push_back(state);
        all = all && seen_[i].repeated;
    }
    spins_ = all;
    ++looks_;
    return steps + (spins_ || looks_ % looks_in_a_row == 0 ? quiet : steps_between_looks);
}

}  // namespace tessera::emulator
