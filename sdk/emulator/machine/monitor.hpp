#pragma once

// Events of a launch: for the trace now, for a timing model later. Without a monitor, which is the default, an event costs
// one test of a null pointer. There is no event for a lane or an instruction.

#include <cstdint>
#include <memory>
#include <string>

namespace tessera::emulator {

class AsyncOperation;
class Cluster;
class Cta;
class Warp;
struct LaunchRequest;
struct LaunchResult;

/// The events of one cluster, on the CPU thread that runs it. The time is Cluster::steps(). It is destroyed with the
/// cluster, which may not have finished.
class ClusterMonitor {
public:
    virtual ~ClusterMonitor() = default;
    /// The warp has run since `start`. If it cannot go on, its splits say what they wait for.
    virtual void ran(const Warp& warp, std::uint64_t start) = 0;
    /// The last warp of the CTA has exited.
    virtual void exited(const Cta& cta) = 0;
    virtual void submitted(const AsyncOperation& work) = 0;
    /// The work has made a step. If it is complete, it is destroyed afterwards.
    virtual void stepped(const AsyncOperation& work, bool is_complete) = 0;
    /// The warp or the work has arrived at an mbarrier, or has changed the bytes that it expects. `phase`: its number of
    /// complete phases, now.
    virtual void arrived(const Warp& warp, const Cta& at, std::uint32_t address, std::uint64_t phase) = 0;
    virtual void arrived(const AsyncOperation& work, const Cta& at, std::uint32_t address, std::uint64_t phase) = 0;
    /// The warp has seen that so many phases of an mbarrier are complete, and goes on.
    virtual void passed(const Warp& warp, const Cta& at, std::uint32_t address, std::uint64_t phase) = 0;
};

/// The events of one launch. Thread-safe.
class LaunchMonitor {
public:
    virtual ~LaunchMonitor() = default;
    /// A cluster starts. Null: nobody wants to know more about it.
    [[nodiscard]] virtual std::unique_ptr<ClusterMonitor> start(const Cluster& cluster) = 0;
    /// The launch has ended, and its clusters are destroyed.
    virtual void end(const LaunchResult& result) = 0;
};

/// Receives the events of all launches. Thread-safe.
class Monitor {
public:
    virtual ~Monitor() = default;
    [[nodiscard]] virtual std::unique_ptr<LaunchMonitor> start(const std::string& kernel,
                                                               const LaunchRequest& request) = 0;
};

}  // namespace tessera::emulator
