#pragma once

// What the ranks of a communicator tell each other besides data: how far they are, and that one of them failed. NCCL does not say
// which rank it is that others wait for.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace tessera::distributed::detail {

/// How far a rank is.
struct PeerStatus {
    std::uint64_t enqueued = 0;  ///< collective operations that it has begun
    bool is_waiting = false;     ///< it is in a call that waits for others
    bool has_left = false;       ///< its communicator was destroyed
};

struct PeerFailure {
    int rank = -1;
    std::string reason;
};

/// This rank's connection to the others. Thread-safe.
class Peers {
public:
    virtual ~Peers() = default;

    /// Tells how far this rank is. Cheap.
    virtual void tell(const PeerStatus& status) noexcept = 0;
    /// Tells all ranks that `rank` failed, this one or one that does not answer. The first failure of all counts.
    virtual void tell_failure(int rank, const std::string& reason) noexcept = 0;
    /// Returns the first failure of any rank that has become known.
    virtual std::optional<PeerFailure> failure() const = 0;
    /// Returns how far all ranks are, as far as that can be known within `patience`; otherwise nothing.
    virtual std::vector<PeerStatus> statuses(std::chrono::milliseconds patience) = 0;
    /// Tells the others that this rank leaves regularly.
    virtual void leave() noexcept = 0;
};

/// The ranks of one process share this.
class SharedStatuses {
public:
    explicit SharedStatuses(int size) : statuses_(static_cast<std::size_t>(size)) {}

    void set(int rank, const PeerStatus& status);
    void fail(int rank, const std::string& reason);
    std::optional<PeerFailure> failure() const;
    std::vector<PeerStatus> all() const;

private:
    mutable std::mutex mutex_;
    std::vector<PeerStatus> statuses_;
    std::optional<PeerFailure> failure_;
    std::atomic<bool> has_failed_{false};
};

std::unique_ptr<Peers> make_local_peers(std::shared_ptr<SharedStatuses> shared, int rank);

/// For a communicator whose other ranks are not reached.
std::unique_ptr<Peers> make_silent_peers();

}  // namespace tessera::distributed::detail
