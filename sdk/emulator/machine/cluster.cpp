#include "machine/cluster.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "machine/grid.hpp"
#include "machine/recording.hpp"
#include "machine/tensor_memory.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

namespace {

/// A cluster that runs apart pauses after so many steps: without a visible effect, and in any case. It may wait for
/// another cluster with loads that do not synchronize.
constexpr std::uint64_t patience = 16'384, longest_apart = 262'144;
/// The steps of a cluster that polls with ordinary loads, until the others go on.
constexpr std::uint64_t spinning_steps = 512;

/// In order: clusters poll the place, so that all see its value before it changes again.
[[nodiscard]] bool is_watched(const Grid& grid, const std::byte* at)
{
    return grid.options.schedule == Schedule::in_order && (grid.polled.contains(at) || grid.polled_before.contains(at));
}

[[nodiscard]] unsigned warps_of(const LaunchRequest& request)
{
    return static_cast<unsigned>((request.block.count() + warp_size - 1) / warp_size);
}

}  // namespace

Cluster::Cluster(Grid& grid_, std::uint64_t index_)
    : grid(grid_),
      index(index_),
      id(position(index_, grid_.clusters)),
      clocks(warps_of(grid_.request) * static_cast<unsigned>(grid_.request.cluster.count()),
             static_cast<unsigned>(grid_.request.cluster.count())),
      choices(grid_.options, index_, grid_.recorder,
              grid_.recorded == nullptr ? nullptr : grid_.recorded->find(index_)),
      scheduler_(make_scheduler(grid_.options, choices)),
      progress_time_(std::chrono::steady_clock::now())
{
    if (grid.clusters.count() > 1) {
        spin_look_ = SpinWatch::quiet_steps;
    }
    const Dim3 extent = grid.request.cluster;
    const auto count = static_cast<std::uint32_t>(extent.count());
    const auto threads = static_cast<std::uint32_t>(grid.request.block.count());
    for (std::uint32_t rank = 0; rank < count; ++rank) {
        const Dim3 in_cluster = position(rank, extent);
        const Dim3 cta_id{id.x * extent.x + in_cluster.x, id.y * extent.y + in_cluster.y,
                          id.z * extent.z + in_cluster.z};
        ctas.push_back(std::make_unique<Cta>(*this, rank, cta_id));
        Cta& cta = *ctas.back();
        if (grid.device.tensor_memory) {
            cta.tensor_memory = std::make_unique<TensorMemory>(cta);
        }
        for (std::uint32_t first = 0; first < threads; first += warp_size) {
            const std::uint32_t lanes = std::min(threads - first, warp_size);
            cta.warps.push_back(
                std::make_unique<Warp>(cta, first / warp_size, lanes == warp_size ? all_lanes : (1u << lanes) - 1));
            warps_.push_back(cta.warps.back().get());
        }
        cta.live_warps = static_cast<std::uint32_t>(cta.warps.size());
    }
    if (grid.options.check && grid.kernel.uses_bulk_copies) {
        global_shadow = std::make_unique<GlobalShadow>(clocks, warps_of(grid.request), grid.clusters.count() == 1);
    }
    exited_.resize(count);
    monitor = grid.monitor == nullptr ? nullptr : grid.monitor->start(*this);
    statistics.clusters = 1;
    statistics.ctas = count;
}

Cluster::~Cluster() { repeated.move_to(grid.report); }

const Options& Cluster::options() const noexcept { return grid.options; }

Cta* Cluster::cta_of(std::uint32_t shared_address) noexcept
{
    const std::uint32_t rank = shared_address >> shared_rank_shift;
    return rank < ctas.size() ? ctas[rank].get() : nullptr;
}

// ---- asynchronous work ----

void Cluster::submit(std::unique_ptr<AsyncOperation> operation, Warp& warp, const Operation& source, LaneMask lanes,
                     AsyncQueue queue)
{
    operation->queue = queue;
    operation->number = ++submitted_;
    operation->issued_at = steps_;
    operation->operation = &source;
    operation->cta_rank = warp.cta.rank;
    operation->warp = warp.index;
    operation->lanes = lanes;
    ++in_flight_[static_cast<std::size_t>(operation->kind)];
    if (grid.options.check && operation->agent == 0) {
        operation->agent = clocks.begin_async(warp.agent, {lanes, warp.live()});
        if (operation->trusts_issuers_fence()) {
            clocks.trust_issuers_fence(operation->agent, warp.agent);
        }
    }
    pending_.push_back(std::move(operation));
    if (monitor != nullptr) [[unlikely]] {
        monitor->submitted(*pending_.back());
    }
    progress();
}

bool Cluster::is_first_in_queue(std::size_t position) const
{
    const AsyncQueue queue = pending_[position]->queue;
    for (std::size_t i = 0; queue != unordered && i < position; ++i) {
        if (pending_[i]->queue == queue) {
            return false;
        }
    }
    return true;
}

std::span<const std::size_t> Cluster::ready_work()
{
    ready_.clear();
    for (std::size_t i = 0; i < pending_.size(); ++i) {
        if (is_first_in_queue(i) && pending_[i]->ready(*this)) {
            ready_.push_back(i);
        }
    }
    return ready_;
}

std::optional<std::size_t> Cluster::oldest_ready_work() const
{
    for (std::size_t i = 0; i < pending_.size(); ++i) {
        if (is_first_in_queue(i) && pending_[i]->ready(*this)) {
            return i;
        }
    }
    return std::nullopt;
}

unsigned Cluster::step_work(std::size_t position)
{
    choices.note(Choice::work, steps_, pending_[position]->number);
    if (pending_[position]->meets_clusters && !may_meet()) {
        return 1;
    }
    ++steps_;
    const bool is_complete = pending_[position]->step(*this);
    if (monitor != nullptr) [[unlikely]] {
        monitor->stepped(*pending_[position], is_complete);
    }
    if (!is_complete) {
        return 1;
    }
    const std::unique_ptr<AsyncOperation> done = std::move(pending_[position]);
    pending_.erase(pending_.begin() + static_cast<std::ptrdiff_t>(position));
    --in_flight_[static_cast<std::size_t>(done->kind)];
    if (grid.options.check && done->agent != 0) {
        clocks.end_async(done->agent);
    }
    notify();
    progress();
    return 1;
}

// ---- warps ----

bool Cluster::can_run(std::size_t position) const
{
    return !warps_[position]->finished() && warps_[position]->runnable();
}

bool Cluster::has_yielded(std::size_t position) const { return warps_[position]->has_yielded(); }

unsigned Cluster::run_warp(std::size_t position, unsigned budget)
{
    if (!can_run(position)) {
        return 0;
    }
    choices.note(Choice::warp, steps_, static_cast<std::uint32_t>(position), budget);
    return run_warp(*warps_[position], budget);
}

unsigned Cluster::run_warp(Warp& warp, unsigned budget)
{
    warp.cta.started = true;
    const std::uint64_t start = steps_;
    const unsigned done = options().schedule == Schedule::pct ? warp.run<true>(budget) : warp.run<false>(budget);
    steps_ += done;
    if (monitor != nullptr) [[unlikely]] {
        monitor->ran(warp, start);
    }
    if (warp.cta.exited() && !exited_[warp.cta.rank]) {
        check_exited(warp.cta);
    }
    return wants_turn_ ? std::max(done, 1U) : done;  // other warps must not run instead
}

// ---- running ----

bool Cluster::resolve_standstill()
{
    idle_ = true;
    notify();
    unsigned done = 0;
    for (Warp* warp : warps_) {
        if (!warp->finished() && warp->runnable()) {
            done += run_warp(*warp, 1);
        }
    }
    idle_ = false;
    if (done > 0) {
        return true;
    }
    for (Warp* warp : warps_) {
        if (!warp->finished() && warp->release_parked()) {
            return true;
        }
    }
    return false;
}

Cluster::Pause Cluster::run_apart()
{
    has_turn_ = wants_turn_ = end_turn_ = false;
    return run(~std::uint64_t{0});
}

Cluster::Pause Cluster::run_turn(std::uint64_t budget)
{
    has_turn_ = true;
    wants_turn_ = end_turn_ = met_ = false;
    return run(steps_ + budget);
}

Cluster::Pause Cluster::run(std::uint64_t until)
{
    thread_local AllocationCache allocations_of_thread;
    allocations = &allocations_of_thread;
    const std::uint64_t start = steps_;
    while (!finished_ && !wants_turn_ && !end_turn_ && steps_ < until) {
        if (grid.stop.load(std::memory_order_relaxed) && !choices.replays()) {
            finished_ = true;  // replay: each cluster goes as far as it did
            break;
        }
        if (grid.clusters_meet && !has_turn_ &&
            (steps_ - std::max(start, last_progress_) > patience || steps_ - start > longest_apart)) {
            return Pause::stuck;
        }
        if (steps_ >= spin_look_ && !has_turn_) [[unlikely]] {
            spin_look_ = spin_watch_.look(warps_, steps_, last_progress_);
        }
        if (spin_watch_.spins(last_progress_) && steps_ - start > spinning_steps && !has_turn_ && spins())
            [[unlikely]] {
            return Pause::stuck;  // let the others run
        }
        if (!pending_.empty()) {
            const auto is = [&](AsyncOperation::Kind kind) { return in_flight_[static_cast<std::size_t>(kind)] != 0; };
            const unsigned state = (is(AsyncOperation::Kind::load) ? 4u : 0u) |
                                   (is(AsyncOperation::Kind::mma) ? 2u : 0u) |
                                   (is(AsyncOperation::Kind::store) ? 1u : 0u);
            ++statistics.overlap_steps[state];
        }
        if (scheduler_->step(*this) == 0) {
            check_finished();
            if (!finished_) {
                choices.note(Choice::idle, steps_);
                if (!resolve_standstill()) {
                    report_hang(true, "no warp can continue, and no asynchronous work is left that could wake one:");
                }
            }
        } else if (steps_ - hang_check_ > 1'000'000 || choices.next_is(Choice::hang)) {
            check_hang();
        }
    }
    statistics.scheduler_steps = steps_;
    return finished_ ? Pause::finished : wants_turn_ ? Pause::wants_turn : Pause::turn_over;
}

// ---- meeting other clusters ----

bool Cluster::may_meet() noexcept
{
    if (!grid.clusters_meet) {
        return true;
    }
    met_ = has_turn_;
    wants_turn_ = !has_turn_;
    return has_turn_;
}

Step Cluster::polled(const std::byte* at, std::uint64_t value)
{
    if (!has_turn_ || grid.uneven_turns) {
        return Step::next;
    }
    auto poll = std::ranges::find(polls_, at, &Poll::at);
    const bool same = poll != polls_.end() && poll->value == value;
    const bool polls = same && poll->repeated;  // the third time
    if (poll == polls_.end()) {
        poll = polls_.begin() + static_cast<std::ptrdiff_t>(next_poll_++ % polls_.size());
    }
    *poll = {at, value, same};
    if (polls) {
        grid.polled.insert(at);
    }
    end_turn_ = polls || is_watched(grid, at);
    return end_turn_ ? Step::yield : Step::next;
}

Step Cluster::changed(const std::byte* at)
{
    if (!has_turn_ || grid.uneven_turns || !is_watched(grid, at)) {
        return Step::next;
    }
    end_turn_ = true;
    return Step::yield;
}

void Cluster::check_finished()
{
    if (is_over()) {
        for (const auto& cta : ctas) {
            if (!exited_[cta->rank]) {
                check_exited(*cta);
            }
            if (cta->exit_order != nullptr) {
                check_exit_order(*cta);
            }
        }
        finished_ = true;
        choices.end(Ending::finished);
    }
}

bool Cluster::is_over() const
{
    return pending_.empty() && std::ranges::all_of(warps_, [](const Warp* warp) { return warp->finished(); });
}

void Cluster::check_exit_order(const Cta& cta)
{
    for (const ExitOrder::Remote& remote : cta.exit_order->remotes()) {
        // Relaxed arrivals at barrier.cluster order no memory, but they do say that the access is over.
        const Times& relaxed = barrier.relaxed.seen;
        const bool known =
            (remote.at.agent < relaxed.size() && relaxed[remote.at.agent] >= remote.at.time) ||
            std::ranges::any_of(cta.warps, [&](const auto& warp) { return clocks.ordered(remote.at, warp->agent); });
        if (known) {
            continue;
        }
        const auto& [operation, rank, warp, lanes] = remote.place;
        report_at(
            operation, rank, warp, lanes, FindingKind::cluster_protocol,
            remote.arrival
                ? fmt::format("this arrives at the mbarrier at shared 0x{:x} of CTA {}, which exits without knowing "
                              "that it has: wait there for phase {} of the mbarrier, or synchronize the cluster "
                              "(barrier.cluster), before a CTA exits",
                              remote.barrier, cta.rank, remote.phase)
                : fmt::format("this accesses shared memory of CTA {}, which exits without knowing that the access "
                              "is over: synchronize the cluster (barrier.cluster) before a CTA exits",
                              cta.rank),
            false);
    }
}

void Cluster::check_exited(Cta& cta)
{
    exited_[cta.rank] = true;
    check_register_changes(cta);
    if (monitor != nullptr) [[unlikely]] {
        monitor->exited(cta);
    }
    if (cta.tensor_memory != nullptr) {
        cta.tensor_memory->check_leaks();
    }
    notify();
}

}  // namespace tessera::emulator
