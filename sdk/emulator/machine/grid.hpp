#pragma once

// A launch in progress: the state that its clusters share.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "machine/launch.hpp"
#include "program/program.hpp"

namespace tessera::emulator {

class Cluster;
class LaunchMonitor;
class LaunchRecorder;
struct RecordedLaunch;

/// Clusters that cluster launch control may still hand out, and printf output.
struct Grid {
    const LoadedModule& module;
    const Program& program;
    const KernelInfo& kernel;
    const FunctionCode& code;
    const LaunchRequest& request;
    const Options& options;
    AddressSpace& memory;
    Report& report;
    const DeviceModel& device;
    Dim3 clusters;                     ///< grid / cluster
    std::uint32_t shared_bytes = 0;    ///< static and dynamic, of one CTA
    std::uint32_t dynamic_offset = 0;  ///< of dynamic shared memory, after the static part, before alignment
    std::uint64_t launch_id = 0;

    /// Number of clusters that start at first. The one at place i of the device runs clusters i, i + resident,
    /// i + 2*resident, ... of the grid.
    std::uint64_t resident = 1;
    /// Number of clusters that the device holds. More than `resident` if the schedule leaves places empty, for cluster
    /// launch control; these are used when all clusters wait.
    std::uint64_t most_resident = 1;
    /// The next cluster of each place that has not started.
    std::vector<std::uint64_t> next;
    /// Address of the grid barrier of a cooperative launch; 0 for other launches.
    std::uint64_t workspace = 0;
    /// Set when a cluster has faulted: the others stop as well.
    std::atomic<bool> stop{false};

    /// Cluster launch control: gives a cluster that has not started to the cluster `asking`. Returns nothing if none is
    /// left or, as hardware may do, if the schedule chooses so. The choice does not depend on the number of CPU threads.
    [[nodiscard]] std::optional<std::uint64_t> cancel_cluster(Cluster& asking);

    void print(std::string_view text);
    std::mutex print_mutex;

    /// Null unless choices are recorded or replayed.
    LaunchRecorder* recorder = nullptr;
    const RecordedLaunch* recorded = nullptr;
    /// Null without Options::monitor.
    LaunchMonitor* monitor = nullptr;

    /// Clusters may synchronize with each other, and several are resident: such an access happens in turns.
    bool clusters_meet = false;
    /// All clusters of the grid are resident at the same time on the device.
    bool fits = true;
    /// Places in memory that clusters poll: in this round of turns, and in the one before.
    std::unordered_set<const std::byte*> polled{}, polled_before{};
    /// In order, for this round of turns: only its length ends a turn.
    bool uneven_turns = false;
    const Operation* operations = nullptr;  ///< of the program, with the handlers for the options
    /// Clusters that have not started. Only between turns, or in one.
    [[nodiscard]] std::uint64_t waiting_clusters() const noexcept;
};

}  // namespace tessera::emulator
