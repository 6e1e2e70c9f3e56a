#pragma once

// Rank 0's end of the connections between processes.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "nccl.hpp"
#include "peers.hpp"
#include "socket.hpp"

namespace tessera::distributed::detail {

/// Welcomes the ranks, knows how far each is, and passes on that one failed. Has a thread.
class Hub {
public:
    /// @param listening  where ranks connect
    /// @param token      a text that they must know; may be empty
    Hub(Socket listening, int size, std::string token, const NcclId& id);
    Hub(const Hub&) = delete;
    Hub& operator=(const Hub&) = delete;
    /// Ends the connections. Ranks that are still there are told that rank 0 has left.
    ~Hub();

    int port() const { return listening_.port(); }

private:
    struct Guest {
        Socket socket;
        int rank = -1;  // -1: it has not said
        bool has_left = false;
    };

    void run();
    void welcome(Guest& guest, const Message& hello);
    /// Returns false if the connection has ended.
    bool serve(Guest& guest);
    void pass_on(const Message& message, int except);

    Socket listening_;
    int size_;
    std::string token_;
    NcclId id_;
    std::vector<Guest> guests_;
    std::vector<PeerStatus> statuses_;
    bool has_failed_ = false;
    std::atomic<bool> ends_{false};
    std::thread thread_;
};

/// Statuses as a text for a message.
std::string packed(const std::vector<PeerStatus>& statuses);
std::vector<PeerStatus> unpacked(const std::string& text);

}  // namespace tessera::distributed::detail
