#include "machine/residents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "machine/cluster.hpp"
#include "machine/fault.hpp"
#include "machine/thread_pool.hpp"

namespace tessera::emulator {

namespace {

/// Scheduler steps of a turn in order.
constexpr std::uint64_t in_order_turn = 4096;
/// A cluster that has met no other for so many steps runs apart again.
constexpr std::uint64_t steps_without_meeting = 4096;
/// A cluster in the adversarial schedule misses at most so many turns in a row.
constexpr std::uint32_t most_missed_turns = 64;

/// Runs `body()` for a cluster. A fault is stored in the outcome and stops the grid.
template <typename Body>
void guarded(Grid& grid, Outcome& outcome, std::uint64_t cluster, Body&& body)
{
    try {
        body();
    } catch (const Fault& fault) {
        outcome.fail(cluster, fault.code(), fault.what());
        grid.stop = true;
    } catch (const std::exception& error) {
        outcome.fail(cluster, error_launch_failure, fmt::format("the emulated device failed: {}", error.what()));
        grid.stop = true;
    }
}

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
    };
    void run_apart(std::size_t place);
    void run_all_apart();
    void take_turns();
    void take_turn(std::size_t place);
    void finish(std::size_t place);
    void check_standstill();

    Grid& grid_;
    Outcome& outcome_;
    unsigned threads_;
    std::vector<Resident> residents_;
    // All of them wait for others, and nothing visible has happened:
    bool moved_ = true;  ///< false: in the last round of turns
    std::uint64_t quiet_steps_ = 0;
    std::uint32_t quiet_rounds_ = 0;
    std::chrono::steady_clock::time_point quiet_since_ = std::chrono::steady_clock::now();
};

Residents::Residents(Grid& grid, Outcome& outcome, unsigned threads)
    : grid_(grid),
      outcome_(outcome),
      threads_(static_cast<unsigned>(std::min<std::uint64_t>(threads, grid.resident))),
      residents_(grid.resident)
{
    for (std::size_t place = 0; place < residents_.size(); ++place) {
        residents_[place].index = place;
    }
}

void Residents::run()
{
    while (!grid_.stop) {
        run_all_apart();
        if (std::ranges::all_of(residents_, &Resident::done)) {
            return;
        }
        take_turns();
        check_standstill();
    }
}

/// The cluster has finished: its place takes the next of its sequence, if there is one.
void Residents::finish(std::size_t place)
{
    Resident& resident = residents_[place];
    outcome_.add(resident.cluster->statistics);
    const std::uint64_t index = grid_.next[place];
    resident = {};
    resident.index = index;
    resident.done = index >= grid_.clusters.count() || grid_.stop;
    if (!resident.done) {
        grid_.next[place] += grid_.resident;
    }
}

void Residents::run_apart(std::size_t place)
{
    Resident& resident = residents_[place];
    while (!resident.done && !grid_.stop) {
        Cluster::Pause pause = Cluster::Pause::finished;
        bool faulted = true;
        guarded(grid_, outcome_, resident.index, [&] {
            if (resident.cluster == nullptr) {
                resident.cluster = std::make_unique<Cluster>(grid_, resident.index);
            }
            pause = resident.cluster->run_apart();
            faulted = false;
        });
        if (faulted) {
            return;
        }
        if (pause != Cluster::Pause::finished) {
            resident.apart = pause != Cluster::Pause::wants_turn;
            resident.met_at = resident.cluster->steps();
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
std::uint64_t turn_of(Cluster& cluster, Schedule schedule)
{
    switch (schedule) {
        case Schedule::in_order: return in_order_turn;
        case Schedule::random: return std::uint64_t{1} << cluster.choose(14);
        case Schedule::adversarial: return std::uint64_t{1} << cluster.choose(18);
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
    std::vector<Turn> turns;
    moved_ = false;
    for (std::size_t place = 0; place < residents_.size(); ++place) {
        Resident& resident = residents_[place];
        if (resident.apart) {
            moved_ = moved_ || !resident.done;
            continue;
        }
        turns.push_back({in_order ? 0 : resident.cluster->choose(0xFFFFFFFF), place});
    }
    std::ranges::stable_sort(turns, {}, &Turn::rank);
    for (const Turn& turn : turns) {
        if (grid_.stop) {
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
    if (schedule == Schedule::adversarial && resident.cluster->choose(3) == 0) {  // it starves for a while
        resident.missed_turns = resident.cluster->choose(most_missed_turns);
        return;
    }
    Cluster& cluster = *resident.cluster;
    ++cluster.statistics.turns;
    const std::uint64_t before = cluster.steps();
    Cluster::Pause pause = Cluster::Pause::turn_over;
    guarded(grid_, outcome_, resident.index, [&] { pause = cluster.run_turn(turn_of(cluster, schedule)); });
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
    if (grid_.stop || ++quiet_rounds_ <= 2 * most_missed_turns || quiet_steps_ < options.hang_limit ||
        std::chrono::duration<double>(std::chrono::steady_clock::now() - quiet_since_).count() < options.hang_seconds) {
        return;
    }
    const auto first = std::ranges::min_element(
        residents_, {}, [](const Resident& resident) { return resident.done ? ~std::uint64_t{0} : resident.index; });
    guarded(grid_, outcome_, first->index, [&] { first->cluster->report_standstill(quiet_steps_); });
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
    if (code_ == 0 || cluster < cluster_) {
        cluster_ = cluster;
        code_ = code;
        message_ = message;
    }
}

void run_clusters(Grid& grid, Outcome& outcome, unsigned threads) { Residents(grid, outcome, threads).run(); }

}  // namespace tessera::emulator
