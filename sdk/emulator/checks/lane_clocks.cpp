// What the lanes of a warp know of each other and of the rest of the cluster, where this differs from what the warp as a
// whole knows.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "checks/clocks.hpp"

namespace tessera::emulator {

namespace {

// When a warp has so many releases in its list, the older half is forgotten. Writes from before them then count as
// released.
constexpr std::size_t remembered_releases = 256;

/// True if `seen` contains what `other` does, except for the agent itself.
bool contains(const Times& seen, const Times& other, Agent itself)
{
    for (std::size_t agent = 0; agent < other.size(); ++agent) {
        if (agent != itself && other[agent] > (agent < seen.size() ? seen[agent] : 0)) {
            return false;
        }
    }
    return true;
}

}  // namespace

void Clocks::note_write(Agent warp, LaneMask lanes) noexcept
{
    ++changes_;
    State& state = agents_[warp];
    if (state.lanes_apart < state.lanes_together) {
        state.wrote = 0;
    }
    state.lanes_apart = state.time;
    state.wrote |= lanes;
}

void Clocks::sync_lanes(Agent warp, LaneMask lanes, LaneMask live)
{
    ++changes_;
    State& state = agents_[warp];
    const std::uint32_t now = state.time++;
    ++state.meetings;
    if ((live & ~lanes) == 0) {
        state.lanes_together = state.time;
        state.lanes_know.reset();
        state.stale.clear();
        return;
    }
    if (state.lanes_know == nullptr) {
        state.lanes_know = std::make_unique<LanesKnow>();
    }
    std::array<std::uint32_t, warp_size> known{};
    for_each_lane(lanes, [&](unsigned lane) {
        for (unsigned other = 0; other < warp_size; ++other) {
            known[other] = std::max(known[other], (*state.lanes_know)[lane][other]);
        }
    });
    for_each_lane(lanes, [&](unsigned lane) { known[lane] = now; });
    for_each_lane(lanes, [&](unsigned lane) { (*state.lanes_know)[lane] = known; });
    if (!state.stale.empty()) {
        StaleLanes together{lanes, {}};
        pass_seen(state, {lanes & live, live}, together.seen);
        for (StaleLanes& stale : state.stale) {
            stale.lanes &= ~lanes;
        }
        state.stale.push_back(std::move(together));
        refresh(state, warp, live);
    }
}

/// Joins what these lanes have seen into `into`.
void Clocks::pass_seen(const State& state, LanesOfWarp by, Times& into)
{
    LaneMask stale = 0;
    for (const StaleLanes& some : state.stale) {
        stale |= some.lanes;
    }
    if (stale == 0 || (by.lanes & by.live & ~stale) != 0) {
        if (into.empty()) {
            into.assign(state.seen.begin(), state.seen.end());
        } else {
            join(into, state.seen);
        }
        return;
    }
    for (const StaleLanes& some : state.stale) {
        if ((some.lanes & by.lanes) != 0) {
            join(into, some.seen);
        }
    }
}

/// These lanes release now.
void Clocks::note_release(State& state, LanesOfWarp by)
{
    std::vector<Release>& releases = state.lane_releases;
    const bool others_wrote = Clocks::others_wrote(state, by.lanes);
    if (releases.empty() && !others_wrote) {
        state.last_release = state.time;
        return;
    }
    if (releases.empty() && state.last_release != 0) {
        releases.push_back({state.last_release, all_lanes, 0, nullptr});
    }
    if (releases.size() >= remembered_releases) {
        const auto oldest_kept = releases.begin() + remembered_releases / 2;
        state.forgotten_releases = oldest_kept->time;
        releases.erase(releases.begin(), oldest_kept);
    }
    Release release{state.time, others_wrote ? by.lanes : all_lanes, state.lanes_together, nullptr};
    if (others_wrote && state.lanes_know != nullptr) {
        release.known = std::make_shared<std::array<std::uint32_t, warp_size>>();
        for_each_lane(by.lanes, [&](unsigned lane) {
            for (unsigned other = 0; other < warp_size; ++other) {
                (*release.known)[other] = std::max((*release.known)[other], (*state.lanes_know)[lane][other]);
            }
        });
    }
    releases.push_back(std::move(release));
}

bool Clocks::released(Epoch epoch, unsigned lane, Agent agent) const noexcept
{
    const OwnParts* const own = agents_[epoch.agent].own.get();
    if (lane >= warp_size || epoch.time < agents_[epoch.agent].start) {
        return true;
    }
    if (own != nullptr && own->in_use) {
        if (own->waited[lane] == 0) {
            return false;
        }
        epoch = {own->warp, own->waited[lane]};
    }
    const State& from = agents_[epoch.agent];
    const Times& seen = agents_[agent].seen;
    const std::uint32_t until = epoch.agent < seen.size() ? seen[epoch.agent] : 0;
    if (agent == epoch.agent || from.lane_releases.empty() || epoch.time < from.forgotten_releases ||
        until < epoch.time || until < from.lane_releases.front().time) {
        return true;
    }
    auto release = std::lower_bound(from.lane_releases.begin(), from.lane_releases.end(), epoch.time,
                                    [](const Release& a, std::uint32_t time) { return a.time < time; });
    for (; release != from.lane_releases.end() && release->time <= until; ++release) {
        if ((release->lanes & bit(lane)) != 0 || epoch.time < release->together ||
            (release->known != nullptr && (*release->known)[lane] >= epoch.time)) {
            return true;
        }
    }
    return false;
}

/// Forgets lanes that know as much as the warp.
void Clocks::refresh(State& state, Agent agent, LaneMask live)
{
    std::erase_if(state.stale, [&](const StaleLanes& stale) {
        return (stale.lanes & live) == 0 || contains(stale.seen, state.seen, agent);
    });
}

/// What these lanes now have seen, beside what the warp has. Returns the lanes that know less than the warp.
LaneMask Clocks::join_stale(State& state, LaneMask lanes, const Times& seen)
{
    LaneMask stale = 0;
    for (std::size_t i = 0, size = state.stale.size(); i < size; ++i) {
        const LaneMask all = state.stale[i].lanes, some = all & lanes;
        stale |= all;
        if (some == 0) {
            continue;
        }
        if (some != all) {
            state.stale[i].lanes &= ~some;
            state.stale.push_back({some, state.stale[i].seen});
            join(state.stale.back().seen, seen);
        } else {
            join(state.stale[i].seen, seen);
        }
    }
    return stale;
}

void Clocks::acquire_some(Agent agent, const SyncPoint& point, LanesOfWarp by)
{
    State& state = agents_[agent];
    const LaneMask stale = join_stale(state, by.lanes, point.seen);
    const LaneMask others = by.live & ~by.lanes & ~stale;
    if (others != 0 && !contains(state.seen, point.seen, agent)) {
        state.stale.push_back({others, state.seen});
    }
    join(state.seen, point.seen);
    state.knows_releases = std::max(state.knows_releases, point.releases);
    refresh(state, agent, by.live);
    ++state.meetings;
    // What all of these lanes acquire together counts as order among them. So does what lanes of the warp released.
    if ((by.lanes & (by.lanes - 1)) != 0) {
        std::vector<StaleLanes> kept = std::exchange(state.stale, {});  // they know no more of others
        sync_lanes(agent, by.lanes, by.live);
        state.stale = std::move(kept);
    } else {
        ++state.time;
    }
    const std::uint32_t own = agent < point.seen.size() ? point.seen[agent] : 0;
    if (own >= state.lanes_together) {
        if (state.lanes_know == nullptr) {
            state.lanes_know = std::make_unique<LanesKnow>();
        }
        for_each_lane(by.lanes, [&](unsigned lane) {
            for (std::uint32_t& known : (*state.lanes_know)[lane]) {
                known = std::max(known, own);
            }
        });
    }
}

void Clocks::acquire_own(Agent warp, const SyncPoint& point, Agent copy, LaneMask lanes, LaneMask issuers)
{
    ++changes_;
    State& state = agents_[warp];
    State& part = agents_[copy];
    join_stale(state, lanes, point.seen);
    const std::uint32_t done = copy < point.seen.size() ? point.seen[copy] : 0;
    const bool is_same = copy >= warps_ && !part.in_use && done >= part.start;  // the number has no other operation yet
    const bool tracked = is_same && part.own != nullptr && part.own->in_use;
    if (!tracked) {
        const bool known = ordered({copy, done}, warp);
        join(state.seen, point.seen);
        state.knows_releases = std::max(state.knows_releases, point.releases);
        ++state.time;
        if (!is_same || known) {
            return;
        }
        if (part.own == nullptr) {
            part.own = std::make_unique<OwnParts>();
        }
        part.own->warp = warp;
        part.own->issuers = issuers;
        part.own->in_use = true;
        part.own->waited.fill(0);
    }
    if (part.own->warp == warp) {
        for_each_lane(lanes, [&](unsigned lane) {
            std::uint32_t& waited = part.own->waited[lane];
            waited = waited == 0 ? state.time : waited;
        });
        note_write(warp, lanes);
    }
}

bool Clocks::over_before_interval(Epoch epoch) const noexcept
{
    if (epoch.agent >= known_before_.size() || known_before_[epoch.agent] < epoch.time) {
        return false;
    }
    const OwnParts* const own = agents_[epoch.agent].own.get();
    if (own == nullptr || !own->in_use) {
        return true;
    }
    bool over = true;
    for_each_lane(own->issuers, [&](unsigned lane) {
        over = over && own->waited[lane] != 0 && own->waited[lane] < interval_starts_[own->warp];
    });
    return over;
}

bool Clocks::lane_knows(Agent warp, unsigned reader, Epoch epoch, unsigned lane) const noexcept
{
    const State& from = agents_[epoch.agent];
    if (epoch.agent == warp || epoch.time < from.start) {
        return true;
    }
    if (from.own != nullptr && from.own->in_use && from.own->warp == warp) {
        return lane >= warp_size || from.own->waited[lane] == 0 ||  // nobody knows: see released()
               lanes_ordered(warp, from.own->waited[lane], lane, reader);
    }
    for (const StaleLanes& stale : agents_[warp].stale) {
        if ((stale.lanes & bit(reader)) != 0) {
            return epoch.agent < stale.seen.size() && stale.seen[epoch.agent] >= epoch.time;
        }
    }
    return true;
}

}  // namespace tessera::emulator
