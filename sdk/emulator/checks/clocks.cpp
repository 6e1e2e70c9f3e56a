#include "checks/clocks.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace tessera::emulator {

namespace {

// Vectors grow in steps, so that the loop of join() has whole blocks, which the compiler turns into vector
// instructions.
constexpr std::size_t block = 16;

constexpr std::size_t rounded_up(std::size_t size) { return (size + block - 1) / block * block; }

// A number is reused only when this many others are free. By then most agents have seen the end of its last operation,
// so two operations with one number are rarely confused.
constexpr std::size_t spare_agents = 64;

// When a warp has executed this many fences, the older half is forgotten. Writes from before them then count as fenced.
constexpr std::size_t remembered_fences = 1024;

void join_seen(Times& into, const Times& from)
{
    if (into.size() < from.size()) {
        into.resize(rounded_up(from.size()), 0);
    }
    std::uint32_t* const target = into.data();
    const std::uint32_t* const source = from.data();
    const std::size_t whole = from.size() / block * block;
    for (std::size_t start = 0; start < whole; start += block) {
        for (std::size_t i = 0; i < block; ++i) {
            target[start + i] = target[start + i] < source[start + i] ? source[start + i] : target[start + i];
        }
    }
    for (std::size_t i = whole; i < from.size(); ++i) {
        target[i] = std::max(target[i], source[i]);
    }
}

}  // namespace

void SyncPoint::join(const SyncPoint& other)
{
    join_seen(seen, other.seen);
    releases = std::max(releases, other.releases);
}

Clocks::Clocks(unsigned warps, unsigned ctas)
    : agents_(warps), warps_(warps), interval_starts_(warps, 1), quiet_starts_(warps, 1), ctas_(ctas)
{
    agents_.reserve(warps + spare_agents);
    for (State& state : agents_) {
        state.in_use = true;
    }
}

void Clocks::join(Times& into, const Times& from) { join_seen(into, from); }

void Clocks::note(Times& seen, Agent agent, std::uint32_t time)
{
    if (seen.size() <= agent) {
        seen.resize(rounded_up(agent + std::size_t{1}), 0);
    }
    seen[agent] = std::max(seen[agent], time);
}

void Clocks::release(Agent agent, SyncPoint& point, LanesOfWarp by)
{
    ++changes_;
    State& state = agents_[agent];
    point.seen.reserve(rounded_up(agent + std::size_t{1}));
    pass_seen(state, by, point.seen);
    note(point.seen, agent, state.time);
    note_release(state, by);
    ++state.time;
    point.releases = ++releases_;
}

void Clocks::acquire(Agent agent, const SyncPoint& point, LanesOfWarp by)
{
    ++changes_;
    State& state = agents_[agent];
    if (state.met != interval_ && !is_async(agent) && tells_of_interval(point, agent)) {
        state.met = interval_;
    }
    if (!by.all() || others_wrote(state, by.lanes)) {
        acquire_some(agent, point, by);
        return;
    }
    join(state.seen, point.seen);
    state.knows_releases = std::max(state.knows_releases, point.releases);
    state.lanes_together = ++state.time;
    state.lanes_know.reset();
    if (!state.stale.empty()) [[unlikely]] {
        for (StaleLanes& stale : state.stale) {
            join(stale.seen, point.seen);
        }
        refresh(state, agent, by.live);
    }
}

bool Clocks::tells_of_interval(const SyncPoint& point, Agent warp) const noexcept
{
    const auto any = [&](std::size_t from, std::size_t to) {
        bool found = false;
        for (std::size_t other = from; other < to; ++other) {
            found |= point.seen[other] >= interval_starts_[other];
        }
        return found;
    };
    const std::size_t known = std::min<std::size_t>(point.seen.size(), warps_);
    return any(0, std::min<std::size_t>(warp, known)) || any(std::size_t{warp} + 1, known);
}

void Clocks::begin_interval(const SyncPoint& acquired)
{
    ++changes_;
    ++interval_;
    for (unsigned warp = 0; warp < warps_; ++warp) {
        interval_starts_[warp] = agents_[warp].time;
    }
    known_before_ = acquired.seen;
    if (in_flight_ == 0) {
        quiet_interval_ = interval_;
        quiet_starts_ = interval_starts_;
    }
}

ScopedPoint& Clocks::memory_point(std::uint64_t address)
{
    if (memory_points_ == nullptr) {
        memory_points_ = std::make_unique<std::array<ScopedPoint, memory_slots>>();
    }
    ScopedPoint& point = (*memory_points_)[memory_slot(address)];
    if (point.near.empty()) {
        point.near.resize(ctas_);
    }
    return point;
}

void Clocks::read_point(Agent agent, unsigned rank, MemoryOrder order, const ScopedPoint& point, FencePoints& fences,
                        LanesOfWarp by)
{
    // volatile: see synchronize()
    if (order.acquires() || order.semantics == Semantics::volatile_access) {
        acquire(agent, point.near[rank], by);
        if (!order.within_cta()) {
            acquire(agent, point.wide, by);
        }
        return;
    }
    fences.observed_near.join(point.near[rank]);
    if (!order.within_cta()) {
        fences.observed_wide.join(point.wide);
    }
}

void Clocks::write_point(Agent agent, unsigned rank, MemoryOrder order, ScopedPoint& point, const FencePoints& fences,
                         LanesOfWarp by)
{
    if (order.releases() || order.semantics == Semantics::volatile_access) {
        const State& state = agents_[agent];
        if (!order.within_cta()) {
            pass_seen(state, by, point.wide.seen);
            note(point.wide.seen, agent, state.time);
            point.wide.releases = releases_ + 1;
        }
        release(agent, point.near[rank], by);
        return;
    }
    point.near[rank].join(fences.fenced_near);
    if (!order.within_cta()) {
        point.wide.join(fences.fenced_wide);
    }
}

void Clocks::fence(Agent agent, MemoryOrder order, FencePoints& fences, LanesOfWarp by)
{
    if (order.acquires()) {
        acquire(agent, fences.observed_near, by);
        if (!order.within_cta()) {
            acquire(agent, fences.observed_wide, by);
        }
    }
    if (order.releases()) {
        release(agent, fences.fenced_near, by);
        if (!order.within_cta()) {
            fences.fenced_wide = fences.fenced_near;
        }
    }
}

bool Clocks::ordered_for_async(Epoch epoch, Agent agent, unsigned lane) const noexcept
{
    if (!ordered(epoch, agent)) {
        return false;
    }
    if (epoch.time == 0 || is_async(epoch.agent)) {
        return true;  // an asynchronous operation's completion implies the fence
    }
    const Times& fenced = agents_[agent].fenced_seen;
    if (is_async(agent) && epoch.agent < fenced.size() && fenced[epoch.agent] >= epoch.time) {
        return true;
    }
    return this->fenced(epoch, agent, lane, fences_shared);
}

bool Clocks::fenced(Epoch epoch, Agent agent, unsigned lane, ProxyFences kinds) const noexcept
{
    const std::vector<Fence>& fences = agents_[epoch.agent].fences;
    if (epoch.time < agents_[epoch.agent].forgotten) {
        return true;
    }
    const LaneMask wanted = lane == any_lane ? all_lanes : LaneMask{1} << lane;
    auto fence = std::lower_bound(fences.begin(), fences.end(), epoch.time,
                                  [](const Fence& a, std::uint32_t time) { return a.time < time; });
    while (fence != fences.end() && ((fence->lanes & wanted) == 0 || (fence->kinds & kinds) == 0)) {
        ++fence;
    }
    return fence != fences.end() && ordered({epoch.agent, fence->time}, agent);
}

bool Clocks::fenced_by_reader(Epoch epoch, Agent warp, ProxyFences kinds) const noexcept
{
    const State& state = agents_[warp];
    for (std::size_t i = 0; i < state.reader_fenced_seen.size(); ++i) {
        const Times& seen = state.reader_fenced_seen[i];
        if ((kinds >> i & 1) != 0 && epoch.agent < seen.size() && seen[epoch.agent] >= epoch.time) {
            return true;
        }
    }
    return false;
}

void Clocks::proxy_fence(Agent warp, LaneMask lanes, ProxyFences kinds)
{
    ++changes_;
    State& state = agents_[warp];
    if (state.fences.size() == remembered_fences) {
        const auto oldest_kept = state.fences.begin() + remembered_fences / 2;
        state.forgotten = oldest_kept->time;
        state.fences.erase(state.fences.begin(), oldest_kept);
    }
    state.fences.push_back({state.time, lanes, kinds});
    if (lanes == all_lanes && (kinds & fences_shared) != 0) {
        state.fenced_seen = state.seen;
    }
    for (std::size_t i = 0; i < state.reader_fenced_seen.size(); ++i) {
        if ((kinds >> i & 1) != 0 && (kinds & fences_one_way) == 0) {
            state.reader_fenced_seen[i] = state.seen;
            note(state.reader_fenced_seen[i], warp, state.time);
        }
    }
    ++state.time;
}

void Clocks::trust_issuers_fence(Agent async, Agent issuer)
{
    ++changes_;
    agents_[async].fenced_seen = agents_[issuer].fenced_seen;
}

Agent Clocks::begin_async(Agent issuer, LanesOfWarp by)
{
    ++changes_;
    Agent agent = 0;
    const bool all_in_existence = agents_.size() > std::numeric_limits<Agent>::max();
    if (all_in_existence && free_.empty()) {
        throw std::length_error(
            "one cluster has 65536 asynchronous operations in flight, the emulator's limit: wait for some of them");
    }
    if (free_.size() > spare_agents || all_in_existence) {
        agent = free_.front();
        free_.pop_front();
    } else {
        agent = static_cast<Agent>(agents_.size());
        agents_.emplace_back();
    }
    State& from = agents_[issuer];
    State& state = agents_[agent];
    state.in_use = true;
    state.start = state.time;
    state.knows_releases = ++releases_;
    state.seen.clear();
    state.seen.reserve(std::max(from.seen.size(), rounded_up(issuer + std::size_t{1})));
    pass_seen(from, by, state.seen);
    state.fenced_seen.clear();
    if (state.own != nullptr) {
        state.own->in_use = false;
    }
    note(state.seen, issuer, from.time);
    note_release(from, by);
    ++from.time;
    ++in_flight_;
    return agent;
}

void Clocks::complete_async(Agent async, SyncPoint& point) { release(async, point); }

void Clocks::end_async(Agent async)
{
    ++changes_;
    State& state = agents_[async];
    if (!state.in_use) {
        return;
    }
    state.in_use = false;
    --in_flight_;
    ++state.time;
    free_.push_back(async);
}

}  // namespace tessera::emulator
