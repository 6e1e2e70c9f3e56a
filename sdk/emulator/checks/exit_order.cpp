#include "checks/exit_order.hpp"

#include <algorithm>

namespace tessera::emulator {

void ExitOrder::accessed(Epoch at, const Place& place)
{
    const auto known = std::ranges::find_if(
        remotes_, [&](const Remote& remote) { return !remote.arrival && remote.at.agent == at.agent; });
    Remote& remote = known == remotes_.end() ? remotes_.emplace_back() : *known;
    remote.place = place;
    remote.at = at;
}

void ExitOrder::arrived(std::uint32_t barrier, std::uint64_t phase, Epoch at, const Place& place)
{
    // Where nobody waits, arrivals must not pile up: the last of an instruction is enough.
    const auto known = std::ranges::find_if(remotes_, [&](const Remote& remote) {
        return remote.arrival && remote.barrier == barrier && remote.place.operation == place.operation &&
               remote.place.rank == place.rank && remote.place.warp == place.warp;
    });
    Remote& remote = known == remotes_.end() ? remotes_.emplace_back() : *known;
    remote = {place, at, true, barrier, phase};
}

void ExitOrder::observed(std::uint32_t barrier, std::uint64_t phases)
{
    std::erase_if(remotes_, [&](const Remote& remote) {
        return remote.arrival && remote.barrier == barrier && remote.phase < phases;
    });
}

void ExitOrder::forget(std::uint32_t barrier)
{
    std::erase_if(remotes_, [&](const Remote& remote) { return remote.arrival && remote.barrier == barrier; });
}

}  // namespace tessera::emulator
