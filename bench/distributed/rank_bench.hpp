#pragma once

/// One rank of the measurement: its matrices, its contenders, and how they are timed beside the other ranks.

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "tessera/distributed.hpp"

namespace tessera::bench {

struct DistributedShape {
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
};

enum class Collective : std::uint8_t { all_gather, reduce_scatter, all_reduce };

struct DistributedOptions {
    std::vector<DistributedShape> shapes;
    std::vector<Collective> collectives;
    std::vector<int> chunks;         ///< ours, besides the library's own choice
    std::vector<std::string> moved;  ///< "copies", "kernels"
    int max_ctas = 0;
    std::size_t rounds = 7;
    std::size_t launches = 20;  ///< of a sample
    bool in_graph = true;
    bool explains = false;
    bool verifies = true;
};

/// Seconds of each contender, the slowest rank of each round.
struct ContenderTimes {
    std::string name;
    std::vector<double> seconds;
    double largest_difference = 0;  ///< from the product of one GPU, relative to what is allowed; 0 if not compared
};

struct ShapeReport {
    DistributedShape shape;
    Collective collective;
    std::vector<ContenderTimes> contenders;
    std::vector<std::string> explained;
};

/// What the threads of a run share.
struct Meeting {
    explicit Meeting(int ranks) : barrier(ranks), seconds(static_cast<std::size_t>(ranks)) {}
    std::barrier<> barrier;
    std::vector<double> seconds;
    std::vector<ShapeReport> reports;  // by rank 0
};

/// The communicators of one rank.
struct RankCommunicators {
    distributed::Communicator* plain;  ///< NCCL as it is by default
    std::map<std::string, distributed::Communicator*> ours;
};

/// Measures all shapes as one rank. Called in a thread for each rank.
void run_rank(const RankCommunicators& communicators, const DistributedOptions& options, Meeting& meeting);

std::string to_string(Collective collective);

}  // namespace tessera::bench
