#pragma once

// How the processes of a communicator find each other. Rank 0 listens on a port; the others connect to it, receive NCCL's id and stay
// connected: a rank whose connection ends without a word has died.

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include "nccl.hpp"
#include "peers.hpp"

namespace tessera::distributed::detail {

/// Gives all ranks the text of rank 0. Called once by each of them.
using Broadcast = std::function<std::string(const std::string& text)>;

/// Where the ranks meet: a host and a port, or a file or a broadcast that says them.
struct MeetingPlace {
    std::string host{};
    int port = 0;
    std::filesystem::path file{};
    Broadcast broadcast{};

    std::string describe() const;
};

struct MeetingMember {
    int rank;
    int size;
    std::chrono::milliseconds timeout;
};

/// This rank's connection, and the id of the communicator.
struct Met {
    std::shared_ptr<Peers> peers;
    NcclId id;
};

/// Meets the others. `id` is rank 0's.
/// @throws Error `invalid_argument` if another rank has this rank's number or counts other ranks; RankError if rank 0 is not found
Met meet(const MeetingPlace& place, const MeetingMember& member, const std::optional<NcclId>& id,
         std::string_view operation, const std::source_location& caller);

/// What rank 0 broadcasts if it cannot say where it is. Other ranks' `meet` throws it.
std::string broadcast_of_failure(const std::string& reason);

/// What the environment says about this process.
struct Surroundings {
    int rank = 0;
    int size = 1;
    int local_rank = 0;
    MeetingPlace place;
};

/// `index` is that of the communicator in the process. @throws Error `invalid_argument`
Surroundings read_surroundings(int index, std::string_view operation, const std::source_location& caller);

}  // namespace tessera::distributed::detail
