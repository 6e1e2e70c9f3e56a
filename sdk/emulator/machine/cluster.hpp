#pragma once

// One cluster of a grid, whose scheduler interleaves its warps and its asynchronous work. One CPU thread at a
// time simulates a cluster; different clusters may run on different threads.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/spare_objects.hpp"
#include "checks/clocks.hpp"
#include "checks/global_shadow.hpp"
#include "checks/repeated_findings.hpp"
#include "checks/report.hpp"
#include "machine/allocation_cache.hpp"
#include "machine/async_operation.hpp"
#include "machine/choices.hpp"
#include "machine/cta.hpp"
#include "machine/launch.hpp"
#include "machine/monitor.hpp"
#include "machine/scheduler.hpp"
#include "machine/spin_watch.hpp"
#include "program/program.hpp"

namespace tessera::emulator {

struct Grid;

/// State of the cluster barrier (barrier.cluster).
struct ClusterBarrier {
    std::uint64_t phase = 0;
    std::uint32_t arrived = 0;  ///< threads
    SyncPoint arriving, completed;
    SyncPoint relaxed_arriving, relaxed;  ///< what came before relaxed arrivals, which do not order it: for messages
};

class Cluster : public Spare<Cluster> {
public:
    Cluster(Grid& grid, std::uint64_t index);
    ~Cluster();

    Grid& grid;
    const std::uint64_t index;  ///< linear %clusterid
    const Dim3 id;
    std::size_t place = 0;  ///< of the device: see Grid::next
    Clocks clocks;
    std::unique_ptr<GlobalShadow> global_shadow;  ///< null if checks are off, or the kernel has no bulk copies
    Choices choices;
    std::vector<std::unique_ptr<Cta>> ctas;
    std::unique_ptr<ClusterMonitor> monitor;  ///< null without Options::monitor
    ClusterBarrier barrier;
    Statistics statistics;
    AllocationCache* allocations = nullptr;  ///< of the CPU thread that runs the cluster
    std::uint64_t clock_reads = 0;           ///< reads of %clock and %globaltimer so far: each advances them

    /// Why a cluster does not go on.
    enum class Pause : std::uint8_t {
        finished,
        wants_turn,  ///< its next access synchronizes with other clusters
        stuck,       ///< ran for long, or did nothing visible for a while: it may wait for another cluster, or spins
        turn_over,
    };
    /// Runs beside other clusters, up to an access that synchronizes with them.
    Pause run_apart();
    /// Runs up to `budget` scheduler steps while the other clusters that synchronize stand still. Ends early when it
    /// polls, and in order also where another cluster polls what it writes, so that no value is missed.
    Pause run_turn(std::uint64_t budget);
    /// An access that synchronizes with other clusters was made in the last turn.
    [[nodiscard]] bool met() const noexcept { return met_; }
    /// All warps wait, or poll memory with ordinary loads, and nothing but another cluster can change that.
    [[nodiscard]] bool spins() const noexcept { return spin_watch_.spins(last_progress_) && pending_.empty(); }

    // --- for accesses that synchronize with other clusters ---
    /// Returns true if it may happen now. If not, the instruction returns Step::later.
    [[nodiscard]] bool may_meet() noexcept;
    /// An access has read `value`, and changed nothing. Returns what the instruction has to return.
    [[nodiscard]] Step polled(const std::byte* at, std::uint64_t value);
    /// An access has changed what is at `at`. Returns what the instruction has to return.
    [[nodiscard]] Step changed(const std::byte* at);

    // --- for schedulers ---
    [[nodiscard]] std::size_t warp_count() const noexcept { return warps_.size(); }
    /// Returns true if run_warp would try to execute something.
    [[nodiscard]] bool can_run(std::size_t position) const;
    /// Runs a warp for at most `budget` operations; in the schedule pct, up to its next visible one. Returns how many were
    /// executed: 0 if it waits or has finished.
    unsigned run_warp(std::size_t position, unsigned budget);
    /// The warp's last run ended with a test that failed.
    [[nodiscard]] bool has_yielded(std::size_t position) const;
    [[nodiscard]] bool has_work() const noexcept { return !pending_.empty(); }
    /// Positions of the asynchronous work that may make a step, oldest first. Valid until something makes a step.
    [[nodiscard]] std::span<const std::size_t> ready_work();
    [[nodiscard]] std::optional<std::size_t> oldest_ready_work() const;
    [[nodiscard]] AsyncOperation& work_at(std::size_t position) { return *pending_[position]; }
    /// Lets this work make a step; it may be gone afterwards. Returns 1.
    unsigned step_work(std::size_t position);
    /// Stops here: the next access synchronizes with other clusters.
    [[nodiscard]] bool wants_turn() const noexcept { return wants_turn_; }
    /// All warps have finished, and all work is complete.
    [[nodiscard]] bool is_over() const;

    /// Submits asynchronous work issued by `lanes` of `warp`. Gives it an agent if checks are on.
    void submit(std::unique_ptr<AsyncOperation> operation, Warp& warp, const Operation& source, LaneMask lanes,
                AsyncQueue queue = unordered);
    /// Call when something changed that a split may wait for (a barrier's phase, an allocation, exited lanes).
    void notify() noexcept { ++changes_; }
    [[nodiscard]] std::uint64_t changes() const noexcept { return changes_; }
    /// Call when something visible happened (a value was written): the program does not hang.
    void progress() noexcept { last_progress_ = steps_; }
    [[nodiscard]] std::uint64_t last_progress() const noexcept { return last_progress_; }
    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
    /// Returns true if `test` is true for some pending asynchronous work.
    template <typename Test>
    [[nodiscard]] bool any_pending(Test&& test) const
    {
        for (const auto& operation : pending_) {
            if (test(*operation)) {
                return true;
            }
        }
        return false;
    }
    /// Chooses a number in [0, bound).
    std::uint32_t choose(Choice kind, std::uint32_t bound) { return choices.pick(kind, bound); }
    [[nodiscard]] const Options& options() const noexcept;
    /// The CTA of a shared address; null if there is no CTA with that rank.
    [[nodiscard]] Cta* cta_of(std::uint32_t shared_address) noexcept;

    /// For asynchronous operations: like Warp::report and fault, at the place where the operation was issued.
    void report(const AsyncOperation& operation, FindingKind kind, FindingText text, bool error = false);
    /// The same for what may be found again and again: only the first needs a message, see KnownOfWork.
    void report(const AsyncOperation& operation, const ShadowFinding& finding);
    /// The next such report() only counts.
    [[nodiscard]] bool is_known(const AsyncOperation& operation, FindingKind kind, std::uint64_t detail) const;
    [[noreturn]] void fault(const AsyncOperation& operation, FindingKind kind, int code, std::string message);
    void report_at(const Operation* operation, std::uint32_t rank, std::uint32_t warp, LaneMask lanes, FindingKind kind,
                   FindingText text, bool error, Report::Known* known = nullptr);
    RepeatedFindings repeated;  ///< counted here, and in the report when the cluster is destroyed

    /// Nothing in the cluster can continue by itself: each waiting split is tried a last time.
    [[nodiscard]] bool idle() const noexcept { return idle_; }

    /// Reports that no cluster of the grid can go on, and throws.
    [[noreturn]] void report_standstill(std::uint64_t instructions);

private:
    Pause run(std::uint64_t until);
    [[nodiscard]] bool is_first_in_queue(std::size_t position) const;
    unsigned run_warp(Warp& warp, unsigned budget);
    [[nodiscard]] bool resolve_standstill();
    void check_hang();
    [[noreturn]] void report_hang(bool deadlock, std::string text);
    void check_finished();
    void check_exited(Cta& cta);
    void check_exit_order(const Cta& cta);

    std::deque<std::unique_ptr<AsyncOperation>> pending_;
    std::array<std::uint32_t, 4> in_flight_{};  // of pending_, by AsyncOperation::Kind
    std::vector<std::size_t> ready_;            // positions in pending_
    std::unique_ptr<Scheduler> scheduler_;
    std::uint32_t submitted_ = 0;
    std::uint64_t changes_ = 1, steps_ = 0, last_progress_ = 0;
    std::vector<Warp*> warps_;
    std::uint64_t hang_check_ = 0;
    SpinWatch spin_watch_;
    std::uint64_t spin_look_ = ~std::uint64_t{0};  // the step of the next look; none if there is one cluster
    std::chrono::steady_clock::time_point progress_time_;
    std::vector<bool> exited_;  // CTAs whose exit has been handled
    bool finished_ = false, idle_ = false;
    bool has_turn_ = false, wants_turn_ = false, end_turn_ = false, met_ = false;
    struct Poll {
        const std::byte* at = nullptr;
        std::uint64_t value = 0;
        bool repeated = false;
    };
    std::array<Poll, 4> polls_;  ///< the latest, of different places
    std::size_t next_poll_ = 0;
};

/// The findings of an asynchronous operation's instruction.
class KnownOfWork final : public KnownFindings {
public:
    KnownOfWork(const Cluster& cluster, const AsyncOperation& work) : cluster_(cluster), work_(work) {}
    [[nodiscard]] bool knows(FindingKind kind, std::uint32_t other_line) const override
    {
        return cluster_.is_known(work_, kind, other_line);
    }

private:
    const Cluster& cluster_;
    const AsyncOperation& work_;
};

}  // namespace tessera::emulator
