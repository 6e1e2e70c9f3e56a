#include "peers.hpp"

#include <utility>

namespace tessera::distributed::detail {

void SharedStatuses::set(int rank, const PeerStatus& status)
{
    const std::scoped_lock lock(mutex_);
    statuses_[static_cast<std::size_t>(rank)] = status;
}

void SharedStatuses::fail(int rank, const std::string& reason)
{
    const std::scoped_lock lock(mutex_);
    if (!failure_) {
        failure_ = PeerFailure{rank, reason};
        has_failed_ = true;
    }
}

std::optional<PeerFailure> SharedStatuses::failure() const
{
    if (!has_failed_) {
        return std::nullopt;
    }
    const std::scoped_lock lock(mutex_);
    return failure_;
}

std::vector<PeerStatus> SharedStatuses::all() const
{
    const std::scoped_lock lock(mutex_);
    return statuses_;
}

namespace {

class LocalPeers final : public Peers {
public:
    LocalPeers(std::shared_ptr<SharedStatuses> shared, int rank) : shared_(std::move(shared)), rank_(rank) {}

    void tell(const PeerStatus& status) noexcept override
    {
        latest_ = status;
        shared_->set(rank_, status);
    }
    void tell_failure(int rank, const std::string& reason) noexcept override
    {
        try {
            shared_->fail(rank, reason);
        } catch (...) {  // NOLINT(bugprone-empty-catch): without memory for the text, the others end by their timeout
        }
    }
    std::optional<PeerFailure> failure() const override { return shared_->failure(); }
    std::vector<PeerStatus> statuses(std::chrono::milliseconds /*patience*/) override { return shared_->all(); }
    void leave() noexcept override
    {
        PeerStatus last = latest_;
        last.has_left = true;
        shared_->set(rank_, last);
    }

private:
    std::shared_ptr<SharedStatuses> shared_;
    int rank_;
    PeerStatus latest_;
};

class SilentPeers final : public Peers {
public:
    void tell(const PeerStatus& /*status*/) noexcept override {}
    void tell_failure(int /*rank*/, const std::string& /*reason*/) noexcept override {}
    std::optional<PeerFailure> failure() const override { return std::nullopt; }
    std::vector<PeerStatus> statuses(std::chrono::milliseconds /*patience*/) override { return {}; }
    void leave() noexcept override {}
};

}  // namespace

std::unique_ptr<Peers> make_local_peers(std::shared_ptr<SharedStatuses> shared, int rank)
{
    return std::make_unique<LocalPeers>(std::move(shared), rank);
}

std::unique_ptr<Peers> make_silent_peers() { return std::make_unique<SilentPeers>(); }

}  // namespace tessera::distributed::detail
