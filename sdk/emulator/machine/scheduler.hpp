#pragma once

// Which warp runs next, or which asynchronous work makes a step: policies over those that are ready.

#include <memory>

#include "machine/options.hpp"

namespace tessera::emulator {

class Cluster;
class Choices;

/// Decides what a cluster does next. It sees the cluster through what Cluster offers to schedulers, and draws random
/// numbers from the cluster's Choices.
class Scheduler {
public:
    virtual ~Scheduler() = default;
    /// Lets one warp or one piece of asynchronous work go on. Returns the number of steps; 0 if nothing can go on.
    virtual unsigned step(Cluster& cluster) = 0;
};

/// The scheduler of the options, or the one that does what was recorded.
[[nodiscard]] std::unique_ptr<Scheduler> make_scheduler(const Options& options, Choices& choices);

}  // namespace tessera::emulator
