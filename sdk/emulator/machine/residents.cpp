#include "machine/residents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <utility>
#include <vector>

#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/recording.hpp"
#include "machine/thread_pool.hpp"

namespace tessera::emulator {

namespace {

/// Scheduler steps of a turn in order.
constexpr std::uint64_t in_order_turn = 4096;
/// A cluster that has met no other for so many steps runs apart again.
constexpr std::uint64_t steps_without_meeting = 4096;
/// A cluster in the adversarial schedule misses at most so many turns in a row.
constexpr std::uint32_t most_missed_turns = 64;
/// After so many rounds of turns in which all clusters wait, those start that a GPU would have started at once.
constexpr std::uint32_t rounds_before_empty_places = 8;
/// A cluster that has run for so many steps without a visible effect may poll in step with another, and find a lock taken
/// each time. Then of so many rounds of turns in order, the last ones have turns of uneven lengths.
constexpr std::uint64_t steps_in_step = 16'384;
constexpr std::uint64_t even_rounds = 56, uneven_rounds = 8;
/// Scheduler steps of the longest of these turns.
constexpr std::uint32_t longest_uneven_turn = 64;

class Residents {
public:
    Residents(Grid& grid, Outcome& outcome, unsigned threads);
    void run();

private:
    /// One place on the device, and the cluster that occupies it.
    struct Resident {
        std::uint64_t index = 0;           ///< of the cluster: running, or the next to start
        std::unique_ptr<Cluster> cluster;  ///< none: has not started
        bool apart = true;                 ///< runs beside the others until it meets one
        bool done = false;                 ///< no cluster is left for this place
        std::uint64_t met_at = 0;          ///< step of the last access that synchronizes clusters
        std::uint32_t missed_turns = 0;    ///< still to miss
        bool spins = false;                ///< did nothing but poll when it last ran apart
        std::uint64_t apart_steps = 0;     ///< of that run
    };
    template <typename Body>
    bool guarded(Resident& resident, Body&& body);
    /// The other clusters stop when one has failed. A replay goes on: each goes as far as it did.
    [[nodiscard]] bool stopped() const noexcept { return grid_.stop && grid_.recorded == nullptr; }
    void run_apart(std::size_t place);
    void run_all_apart();
    void take_turns();
    void take_turn(std::size_t place);
    void finish(std::size_t place);
    void check_standstill();
    bool use_empty_places();

    Grid& grid_;
    Outcome& outcome_;
    unsigned threads_;
    std::vector<Resident> residents_;
    // All of them wait for others, and nothing visible has happened:
    bool moved_ = true;  ///< false: in the last round of turns
    std::uint64_t quiet_steps_ = 0;
    std::uint32_t quiet_rounds_ = 0;
    std::uint64_t rounds_ = 0;
    std::chrono::steady_clock::time_point quiet_since_ = std::chrono::steady_clock::now();
};

Residents::Residents(Grid& grid, Outcome& outcome, unsigned threads)
    : grid_(grid),
      outcome_(outcome),
      threads_(static_cast<unsigned>(std::min<std::uint64_t>(threads, grid.most_resident))),
      residents_(grid.resident)
{
    for (std::size_t place = 0; place < residents_.size(); ++place) {
        residents_[place].index = place;
    }
}

void Residents::run()
{
    while (!stopped()) {
        run_all_apart();
        if (std::ranges::all_of(residents_, &Resident::done)) {
            return;
        }
        take_turns();
        check_standstill();
    }
}

/// Runs `body()` for a resident cluster. A fault is stored in the outcome and stops the grid. Returns false if the
/// cluster cannot go on.
template <typename Body>
bool Residents::guarded(Resident& resident, Body&& body)
{
    try {
        body();
        return true;
    } catch (const ReplayEnded&) {
        // It went no further.
    } catch (const ScheduleMisfit& misfit) {
        outcome_.misfit(resident.index, misfit.what());
        grid_.stop = true;
    } catch (const Fault& fault) {
        outcome_.fail(resident.index, fault.code(), fault.what());
        grid_.stop = true;
        if (resident.cluster != nullptr) {
            resident.cluster->choices.end(Ending::failed);
        }
    } catch (const std::exception& error) {
        outcome_.fail(resident.index, error_launch_failure,
                      fmt::format("the emulated device failed: {}", error.what()));
        grid_.stop = true;
    }
    resident.done = true;
    return false;
}

/// The cluster has finished: its place takes the next of its sequence, if there is one.
void Residents::finish(std::size_t place)
{
    Resident& resident = residents_[place];
    outcome_.add(resident.cluster->statistics);
    const std::uint64_t index = grid_.next[place];
    resident = {};
    resident.index = index;
    resident.done = index >= grid_.clusters.count() || stopped();
    if (!resident.done) {
        grid_.next[place] += grid_.resident;
    }
}

void Residents::run_apart(std::size_t place)
{
    Resident& resident = residents_[place];
    while (!resident.done && !stopped()) {
        Cluster::Pause pause = Cluster::Pause::finished;
        std::uint64_t before = 0;
        if (!guarded(resident, [&] {
                if (resident.cluster == nullptr) {
                    if (grid_.recorded != nullptr) {
                        grid_.recorded->expect(resident.index);
                    }
                    resident.cluster = std::make_unique<Cluster>(grid_, resident.index);
                    resident.cluster->place = place;
                }
                before = resident.cluster->steps();
                pause = resident.cluster->run_apart();
            })) {
            return;
        }
        if (pause != Cluster::Pause::finished) {
            resident.apart = pause != Cluster::Pause::wants_turn;
            resident.met_at = resident.cluster->steps();
            resident.spins = pause == Cluster::Pause::stuck && resident.cluster->spins() &&
                             resident.cluster->last_progress() < before;
            resident.apart_steps = resident.met_at - before;
            return;
        }
        finish(place);
    }
}

void Residents::run_all_apart()
{
    std::vector<std::size_t> places;
    for (std::size_t place = 0; place < residents_.size(); ++place) {
        if (residents_[place].apart && !residents_[place].done) {
            places.push_back(place);
        }
    }
    std::atomic<std::size_t> next{0};
    const auto work = [&] {
        for (std::size_t i = next++; i < places.size(); i = next++) {
            run_apart(places[i]);
        }
    };
    if (places.size() < 2 || threads_ < 2) {
        return work();
    }
    ThreadPool::instance().run(threads_ - 1, work);
}

/// The steps of a cluster's next turn.
std::uint64_t turn_of(Cluster& cluster, Schedule schedule, std::uint64_t round)
{
    switch (schedule) {
        case Schedule::in_order:
            return cluster.grid.uneven_turns ? 1 + Random(round, cluster.index).below(longest_uneven_turn)
                                             : in_order_turn;
        case Schedule::random:
        case Schedule::pct: return std::uint64_t{1} << cluster.choose(Choice::turn_length, 14);
        case Schedule::adversarial: return std::uint64_t{1} << cluster.choose(Choice::turn_length, 18);
    }
    return in_order_turn;
}

/// One round: each cluster that meets others has a turn, in an order that the seed chooses.
void Residents::take_turns()
{
    struct Turn {
        std::uint32_t rank;
        std::size_t place;
    };
    const bool in_order = grid_.options.schedule == Schedule::in_order;
    grid_.uneven_turns = in_order && ++rounds_ % (even_rounds + uneven_rounds) >= even_rounds &&
                         std::ranges::any_of(residents_, [](const Resident& resident) {
                             const Cluster* cluster = resident.cluster.get();
                             return cluster != nullptr && cluster->steps() - cluster->last_progress() > steps_in_step;
                         });
    std::vector<Turn> turns;
    moved_ = false;
    for (std::size_t place = 0; place < residents_.size(); ++place) {
        Resident& resident = residents_[place];
        if (resident.apart || resident.done) {
            moved_ = moved_ || !(resident.done || resident.spins);
            quiet_steps_ += resident.done ? 0 : resident.apart_steps;
            continue;
        }
        std::uint32_t rank = 0;
        if (in_order || guarded(resident, [&] { rank = resident.cluster->choose(Choice::turn_order, 0xFFFFFFFF); })) {
            turns.push_back({rank, place});
        }
    }
    std::ranges::stable_sort(turns, {}, &Turn::rank);
    for (const Turn& turn : turns) {
        if (stopped()) {
            return;
        }
        take_turn(turn.place);
    }
    grid_.polled_before = std::move(grid_.polled);
    grid_.polled.clear();
}

void Residents::take_turn(std::size_t place)
{
    Resident& resident = residents_[place];
    const Schedule schedule = grid_.options.schedule;
    if (resident.missed_turns > 0) {
        --resident.missed_turns;
        return;
    }
    Cluster& cluster = *resident.cluster;
    const std::uint64_t before = cluster.steps();
    Cluster::Pause pause = Cluster::Pause::turn_over;
    bool has_turn = true;
    if (!guarded(resident,
                 [&] {
                     if (schedule == Schedule::adversarial && cluster.choose(Choice::starvation, 3) == 0) {
                         resident.missed_turns = cluster.choose(Choice::starvation, most_missed_turns);
                         has_turn = false;
                         return;
                     }
                     ++cluster.statistics.turns;
                     pause = cluster.run_turn(turn_of(cluster, schedule, rounds_));
                 }) ||
        !has_turn) {
        return;
    }
    if (pause == Cluster::Pause::finished) {
        moved_ = true;
        return finish(place);
    }
    moved_ = moved_ || cluster.last_progress() >= before;
    quiet_steps_ += cluster.steps() - before;
    resident.met_at = cluster.met() ? cluster.steps() : resident.met_at;
    resident.apart = cluster.steps() - resident.met_at > steps_without_meeting;
    moved_ = moved_ || resident.apart;
}

/// Uses places that the schedule has left empty: a cluster may wait for one that would be resident on a GPU. Returns false
/// if there are none, or no cluster is left to start.
bool Residents::use_empty_places()
{
    const std::uint64_t count = grid_.clusters.count();
    bool is_used = false;
    for (std::size_t used = residents_.size(); used > 0 && residents_.size() < grid_.most_resident; --used) {
        const auto first = std::ranges::min_element(grid_.next);
        if (*first >= count) {
            break;
        }
        // It takes over the sequence, so that no two places share one.
        Resident resident;
        resident.index = std::exchange(*first, count);
        grid_.next.push_back(resident.index + grid_.resident);
        residents_.push_back(std::move(resident));
        is_used = true;
    }
    if (is_used) {
        quiet_steps_ = 0;
        quiet_rounds_ = 0;
    }
    return is_used;
}

/// Ends the launch when all clusters have polled for a long time and none has done anything else.
void Residents::check_standstill()
{
    if (moved_) {
        quiet_steps_ = 0;
        quiet_rounds_ = 0;
        quiet_since_ = std::chrono::steady_clock::now();
        return;
    }
    const Options& options = grid_.options;
    // So many rounds include a turn of each cluster.
    const auto first = std::ranges::min_element(
        residents_, {}, [](const Resident& resident) { return resident.done ? ~std::uint64_t{0} : resident.index; });
    if (stopped() || first->done) {
        return;
    }
    ++quiet_rounds_;
    if (quiet_rounds_ >= rounds_before_empty_places && use_empty_places()) {
        return;
    }
    if (grid_.recorded != nullptr) {  // after the same round, not after the same time
        if (!first->cluster->choices.next_is(Choice::standstill)) {
            return;
        }
    } else if (quiet_rounds_ <= 2 * most_missed_turns || quiet_steps_ < options.hang_limit ||
               std::chrono::duration<double>(std::chrono::steady_clock::now() - quiet_since_).count() <
                   options.hang_seconds) {
        return;
    }
    guarded(*first, [&] { first->cluster->report_standstill(quiet_steps_); });
}

}  // namespace

void Outcome::add(const Statistics& statistics)
{
    const std::scoped_lock lock(mutex_);
    sum_ += statistics;
}

void Outcome::fail(std::uint64_t cluster, int code, const std::string& message)
{
    const std::scoped_lock lock(mutex_);
    if (code_ == 0 || (fits_ && cluster < cluster_)) {
        cluster_ = cluster;
        code_ = code;
        message_ = message;
    }
}

void Outcome::misfit(std::uint64_t cluster, const std::string& message)
{
    const std::scoped_lock lock(mutex_);
    if (code_ == 0 || fits_ || cluster < cluster_) {
        cluster_ = cluster;
        code_ = error_launch_failure;
        message_ = message;
    }
    fits_ = false;
}

void run_clusters(Grid& grid, Outcome& outcome, unsigned threads) { Residents(grid, outcome, threads).run(); }

}  // namespace tessera::emulator
