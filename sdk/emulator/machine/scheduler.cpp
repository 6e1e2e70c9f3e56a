#include "machine/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "machine/choices.hpp"
#include "machine/cluster.hpp"

namespace tessera::emulator {

namespace {

constexpr unsigned in_order_quantum = 256;

/// Makes a step of the ready work that `choose(number of them)` names. Returns 0 if none is ready.
template <typename Choose>
unsigned step_ready_work(Cluster& cluster, Choose&& choose)
{
    const auto ready = cluster.ready_work();
    return ready.empty() ? 0 : cluster.step_work(ready[choose(static_cast<std::uint32_t>(ready.size()))]);
}

/// Warps in turn; between two of them the oldest asynchronous work that is ready makes a step.
class InOrder final : public Scheduler {
public:
    unsigned step(Cluster& cluster) override
    {
        if (std::exchange(work_is_next_, false) && cluster.has_work()) {
            if (const unsigned done = step_oldest(cluster); done != 0) {
                return done;
            }
        }
        const std::size_t count = cluster.warp_count();
        const unsigned quantum = cluster.has_work() ? in_order_quantum : 4 * in_order_quantum;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t position = next_warp_;
            next_warp_ = (next_warp_ + 1) % count;
            const unsigned done = cluster.run_warp(position, quantum);
            if (cluster.wants_turn()) {
                next_warp_ = position;
                return done;
            }
            if (done != 0) {
                work_is_next_ = true;
                return done;
            }
        }
        return cluster.has_work() ? step_oldest(cluster) : 0;
    }

private:
    static unsigned step_oldest(Cluster& cluster)
    {
        const auto oldest = cluster.oldest_ready_work();
        return oldest ? cluster.step_work(*oldest) : 0;
    }

    std::size_t next_warp_ = 0;
    bool work_is_next_ = false;
};

/// Any warp, for any number of operations; asynchronous work in a third of the steps.
class RandomOrder final : public Scheduler {
public:
    explicit RandomOrder(Choices& choices) : choices_(choices) {}

    unsigned step(Cluster& cluster) override
    {
        const auto any = [&](std::uint32_t count) { return choices_.draw(count); };
        if (cluster.has_work() && choices_.draw(3) == 0) {
            if (const unsigned done = step_ready_work(cluster, any); done != 0) {
                return done;
            }
        }
        const auto count = static_cast<std::uint32_t>(cluster.warp_count());
        const std::size_t first = choices_.draw(count);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t position = (first + i) % count;
            if (const unsigned done = cluster.run_warp(position, 1 + choices_.draw(64)); done != 0) {
                return done;
            }
        }
        return step_ready_work(cluster, any);
    }

private:
    Choices& choices_;
};

/// One warp runs as far as it can; asynchronous work is late, or early and the newest first. Both change now and then. One
/// operation at a time starves: late work passes it, as long as there is other work.
class Adversarial final : public Scheduler {
public:
    explicit Adversarial(Choices& choices) : choices_(choices) {}

    unsigned step(Cluster& cluster) override
    {
        if (order_.empty()) {
            order_.resize(cluster.warp_count());
            std::iota(order_.begin(), order_.end(), std::size_t{0});
        }
        if (cluster.steps() >= next_mood_) {
            for (std::size_t i = order_.size(); i > 1; --i) {
                std::swap(order_[i - 1], order_[choices_.draw(static_cast<std::uint32_t>(i))]);
            }
            is_work_late_ = choices_.draw(3) != 0;
            next_mood_ = cluster.steps() + 100 + choices_.draw(5000);
        }
        if (!is_work_late_ && cluster.has_work()) {
            if (const unsigned done = step_ready_work(cluster, [](std::uint32_t count) { return count - 1; });
                done != 0) {
                return done;
            }
        }
        for (const std::size_t position : order_) {
            if (const unsigned done = cluster.run_warp(position, 1 + choices_.draw(400)); done != 0) {
                return done;
            }
        }
        return step_late_work(cluster);
    }

private:
    unsigned step_late_work(Cluster& cluster)
    {
        const auto ready = cluster.ready_work();
        if (ready.empty()) {
            return 0;
        }
        const auto count = static_cast<std::uint32_t>(ready.size());
        const auto starves = [&](std::size_t position) { return cluster.work_at(position).number == starving_; };
        if (std::none_of(ready.begin(), ready.end(), starves)) {
            starving_ = cluster.work_at(ready[choices_.draw(count)]).number;
        }
        std::size_t chosen = choices_.draw(count);
        if (starves(ready[chosen])) {
            chosen = (chosen + 1) % count;
        }
        return cluster.step_work(ready[chosen]);
    }

    Choices& choices_;
    std::vector<std::size_t> order_;  // in which warps are tried
    std::uint32_t starving_ = 0;      // number of an operation
    bool is_work_late_ = false;       // asynchronous work runs only when nothing else can
    std::uint64_t next_mood_ = 0;     // step at which order and behaviour change
};

/// PCT: Burckhardt, Kothari, Musuvathi, Nagarakatti, "A randomized scheduler with probabilistic guarantees of finding
/// bugs", ASPLOS 2010. A thread, here a warp or asynchronous work, gets a random priority when it starts, and the highest
/// one that can run makes a step: up to its next visible operation. At depth - 1 random steps the priority of the thread
/// that runs falls below all first ones.
///
/// A fault that needs `depth` ordered pairs of steps of the cluster is found with a probability of at least
/// 1 / (n * k^(depth-1)) by each seed, for n threads and k steps (Statistics::pct_threads, pct_steps), if k is given.
/// If not, a power of two up to 2^most_doublings is drawn instead, and the bound is 1 / ((most_doublings+1) * n *
/// (2k)^(depth-1)).
///
/// A warp that polls counts as one that waits until something happens: without this, it could keep the others from running
/// for ever. It polls if a test of a barrier has failed, or if it has made `patience` steps without an effect.
class PriorityScheduler final : public Scheduler {
public:
    PriorityScheduler(const Options& options, Choices& choices) : choices_(choices)
    {
        const std::uint64_t steps =
            options.depth_steps != 0 ? options.depth_steps : std::uint64_t{1} << choices_.draw(most_doublings + 1);
        for (std::uint32_t i = 1; i < options.depth; ++i) {
            changes_.push_back(choices_.draw() % steps);
        }
    }

    unsigned step(Cluster& cluster) override
    {
        while (warps_.size() < cluster.warp_count()) {
            warps_.push_back({new_priority()});
        }
        for (;;) {
            const Thread first = find_first(cluster);
            if (first.priority == nullptr) {
                return 0;
            }
            if (change_priority(*first.priority)) {
                continue;  // another one may be first now
            }
            const std::uint64_t before = cluster.steps();
            const unsigned done =
                first.is_warp ? cluster.run_warp(first.position, most_operations) : cluster.step_work(first.position);
            if (done == 0) {
                continue;  // what it waits for has not happened
            }
            ++steps_;
            has_changed_ = false;
            cluster.statistics.pct_steps = steps_;
            cluster.statistics.pct_threads = threads_;
            if (first.is_warp) {
                WarpState& warp = warps_[first.position];
                warp.quiet = cluster.last_progress() >= before ? 0 : warp.quiet + 1;
                if (cluster.has_yielded(first.position) || warp.quiet > patience) {
                    warp.quiet = 0;
                    warp.polled = steps_;
                    warp.seen = now(cluster);
                }
            }
            return done;
        }
    }

private:
    static constexpr unsigned most_doublings = 19, patience = 16, most_operations = 4096;

    struct WarpState {
        std::int64_t priority = 0;
        unsigned quiet = 0;        // steps without an effect
        std::uint64_t polled = 0;  // step of the last poll; 0: does not poll
        std::uint64_t seen = 0;    // now() at that time
    };
    struct Thread {
        std::int64_t* priority = nullptr;  // null: none can run
        std::size_t position = 0;
        bool is_warp = true;
    };

    /// Differs after something has happened.
    static std::uint64_t now(const Cluster& cluster) { return cluster.changes() + cluster.last_progress(); }

    std::int64_t new_priority()
    {
        ++threads_;
        // Above those that the changes give; two are equal with a probability of 2^-62.
        return static_cast<std::int64_t>(choices_.draw() >> 2U) + (std::int64_t{1} << 32U);
    }

    Thread find_first(Cluster& cluster)
    {
        Thread first;
        const auto consider = [&](std::int64_t& priority, std::size_t position, bool is_warp) {
            if (first.priority == nullptr || priority > *first.priority) {
                first = {&priority, position, is_warp};
            }
        };
        std::size_t polls_longest = warps_.size();
        for (std::size_t i = 0; i < warps_.size(); ++i) {
            WarpState& warp = warps_[i];
            if (!cluster.can_run(i)) {
                continue;
            }
            if (warp.polled == 0 || warp.seen != now(cluster)) {
                consider(warp.priority, i, true);
            } else if (polls_longest == warps_.size() || warp.polled < warps_[polls_longest].polled) {
                polls_longest = i;
            }
        }
        for (const std::size_t work : cluster.ready_work()) {
            std::int64_t& priority = cluster.work_at(work).priority;
            priority = priority == 0 ? new_priority() : priority;
            consider(priority, work, false);
        }
        if (first.priority == nullptr && polls_longest != warps_.size()) {
            first = {&warps_[polls_longest].priority, polls_longest, true};
        }
        return first;
    }

    /// Lowers the priority of the thread that is about to run if its step is one of the random ones.
    bool change_priority(std::int64_t& priority)
    {
        if (has_changed_) {
            return false;
        }
        for (std::size_t i = 0; i < changes_.size(); ++i) {
            if (changes_[i] == steps_) {
                priority = static_cast<std::int64_t>(i) + 1;
                has_changed_ = true;
            }
        }
        return has_changed_;
    }

    Choices& choices_;
    std::vector<std::uint64_t> changes_;  // steps
    std::vector<WarpState> warps_;
    std::uint64_t steps_ = 0, threads_ = 0;
    bool has_changed_ = false;  // a priority, before this step
};

/// Does what was recorded.
class Replay final : public Scheduler {
public:
    explicit Replay(Choices& choices) : choices_(choices) {}

    unsigned step(Cluster& cluster) override
    {
        for (;;) {
            const Decision* const decision = choices_.next(cluster.steps());
            if (decision == nullptr) {
                if (!cluster.is_over()) {
                    choices_.continues();
                }
                return 0;
            }
            unsigned done = 0;
            switch (decision->kind) {
                case Choice::warp:
                    if (decision->value >= cluster.warp_count() || !cluster.can_run(decision->value)) {
                        choices_.misfit(*decision, decision->value >= cluster.warp_count()
                                                       ? fmt::format("the cluster has {} warps", cluster.warp_count())
                                                       : "this warp has finished, or waits, here");
                    }
                    done = cluster.run_warp(decision->value, decision->bound);
                    break;
                case Choice::work: done = step_work(cluster, *decision); break;
                case Choice::idle: return 0;
                default: choices_.misfit(*decision, "the cluster runs beside others here");
            }
            if (done != 0) {
                return done;
            }
        }
    }

private:
    unsigned step_work(Cluster& cluster, const Decision& decision)
    {
        for (const std::size_t position : cluster.ready_work()) {
            if (cluster.work_at(position).number == decision.value) {
                return cluster.step_work(position);
            }
        }
        choices_.misfit(decision, "there is no such asynchronous work here, or it is not ready");
    }

    Choices& choices_;
};

}  // namespace

std::unique_ptr<Scheduler> make_scheduler(const Options& options, Choices& choices)
{
    if (choices.replays()) {
        return std::make_unique<Replay>(choices);
    }
    switch (options.schedule) {
        case Schedule::in_order: return std::make_unique<InOrder>();
        case Schedule::random: return std::make_unique<RandomOrder>(choices);
        case Schedule::adversarial: return std::make_unique<Adversarial>(choices);
        case Schedule::pct: return std::make_unique<PriorityScheduler>(options, choices);
    }
    return std::make_unique<InOrder>();
}

}  // namespace tessera::emulator
