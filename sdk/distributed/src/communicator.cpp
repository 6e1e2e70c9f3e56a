#include "tessera/distributed/communicator.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#include "communicator_state.hpp"
#include "meeting.hpp"

namespace tessera::distributed {
namespace {

using detail::CommunicatorState;
using detail::Nccl;
using detail::NcclResult;
using tessera::detail::CurrentDevice;
using tessera::detail::raise;

void require_options(const CommunicatorOptions& options, std::string_view operation, const std::source_location& caller)
{
    if (options.timeout.count() <= 0 || options.max_ctas < 0) {
        raise(ErrorCode::invalid_argument, operation, caller,
              fmt::format("a timeout of {} ms and at most {} CTAs", options.timeout.count(), options.max_ctas),
              "a timeout above 0, and 0 or more CTAs");
    }
}

detail::NcclConfig config_of(const Nccl& nccl, const CommunicatorOptions& options)
{
    detail::NcclConfig config;
    config.version = static_cast<unsigned>(std::min(nccl.version, static_cast<int>(config.version)));
    config.blocking = 0;
    if (options.max_ctas > 0) {
        config.min_ctas = 1;
        config.max_ctas = options.max_ctas;
    }
    if (options.copy_engines && nccl.has_copies) {
        config.cta_policy = detail::nccl_policy_zero_ctas;
    }
    return config;
}

detail::NcclId new_id(const Nccl& nccl, std::string_view operation, const std::source_location& caller)
{
    detail::NcclId id;
    if (const NcclResult result = nccl.get_unique_id(&id); result != NcclResult::success) {
        raise(ErrorCode::communication_failed, operation, caller,
              fmt::format("ncclGetUniqueId returned {} ({}): {}", nccl.get_error_string(result),
                          static_cast<int>(result), nccl.get_last_error(nullptr)),
              "NCCL found no network interface: NCCL_DEBUG=WARN makes it say more");
    }
    return id;
}

/// Joins as one rank, in the thread that will use it.
std::shared_ptr<CommunicatorState> join(const Nccl& nccl, const detail::NcclId& id, int rank, int size,
                                        const Device& device, const CommunicatorOptions& options,
                                        std::shared_ptr<detail::Peers> peers, std::string_view operation,
                                        const std::source_location& caller)
{
    const CurrentDevice current(device.ordinal(), operation, caller);
    detail::NcclConfig config = config_of(nccl, options);
    ncclComm* comm = nullptr;
    const NcclResult result = nccl.comm_init_rank_config(&comm, size, id, rank, &config);
    if (comm == nullptr || (result != NcclResult::success && result != NcclResult::in_progress)) {
        const std::string reason =
            fmt::format("ncclCommInitRankConfig returned {} ({}): {}", nccl.get_error_string(result),
                        static_cast<int>(result), nccl.get_last_error(nullptr));
        peers->tell_failure(rank, reason);
        throw RankError(rank, operation, caller, fmt::format("rank {} of {} failed: {}", rank, size, reason));
    }
    auto state = std::make_shared<CommunicatorState>(
        CommunicatorState::Parts{&nccl, comm, true, rank, size, device, options, std::move(peers)}, caller);
    state->finish_making(operation, caller);
    return state;
}

std::shared_ptr<CommunicatorState> join_at(const detail::MeetingPlace& place, int rank, int size, const Device& device,
                                           const CommunicatorOptions& options, std::string_view operation,
                                           const std::source_location& caller)
{
    require_options(options, operation, caller);
    if (size < 1 || rank < 0 || rank >= size) {
        raise(ErrorCode::invalid_argument, operation, caller, fmt::format("there is no rank {} of {}", rank, size),
              "0 <= rank < size");
    }
    const Nccl& nccl = Nccl::get(operation, caller);
    std::optional<detail::NcclId> id;
    if (rank == 0) {
        id = new_id(nccl, operation, caller);
    }
    detail::Met met = detail::meet(place, {rank, size, options.timeout}, id, operation, caller);
    return join(nccl, met.id, rank, size, device, options, std::move(met.peers), operation, caller);
}

std::shared_ptr<CommunicatorState> take(ncclComm* comm, bool is_owned, const CommunicatorOptions& options,
                                        std::string_view operation, const std::source_location& caller)
{
    require_options(options, operation, caller);
    if (comm == nullptr) {
        raise(ErrorCode::invalid_argument, operation, caller, "the communicator is null",
              "one that ncclCommInitRank has made");
    }
    const Nccl& nccl = Nccl::get(operation, caller);
    int rank = 0;
    int size = 0;
    int device = 0;
    for (const NcclResult result :
         {nccl.comm_user_rank(comm, &rank), nccl.comm_count(comm, &size), nccl.comm_cu_device(comm, &device)}) {
        if (result != NcclResult::success) {
            raise(ErrorCode::communication_failed, operation, caller,
                  fmt::format("NCCL does not accept the communicator: {} ({})", nccl.get_error_string(result),
                              static_cast<int>(result)),
                  fmt::format("TESSERA_NCCL must name the library that it was made with; this is {}", nccl.library));
        }
    }
    return std::make_shared<CommunicatorState>(
        CommunicatorState::Parts{&nccl, comm, is_owned, rank, size, Device(device, caller), options,
                                 detail::make_silent_peers()},
        caller);
}

}  // namespace

Communicator::Communicator(std::shared_ptr<detail::CommunicatorState> state) noexcept
    : state_(std::move(state)), exceptions_(std::uncaught_exceptions())
{}
Communicator::Communicator(Communicator&& other) noexcept = default;
Communicator& Communicator::operator=(Communicator&& other) noexcept
{
    if (this != &other) {
        leave();
        state_ = std::move(other.state_);
        exceptions_ = other.exceptions_;
    }
    return *this;
}
Communicator::~Communicator() { leave(); }

void Communicator::leave() noexcept
{
    if (state_ == nullptr) {
        return;
    }
    if (std::uncaught_exceptions() > exceptions_) {
        state_->abort("an exception ended its part of the work");
    }
    state_->peers().leave();
    state_.reset();
}

Communicator Communicator::from_environment(const CommunicatorOptions& options, std::source_location caller)
{
    constexpr std::string_view operation = "Communicator::from_environment";
    static std::atomic<int> made{0};
    const detail::Surroundings around = detail::read_surroundings(made, operation, caller);
    const int devices = Device::count();
    if (devices == 0) {
        static_cast<void>(Device::current(caller));  // says why there is none
    }
    ++made;
    return Communicator(join_at(around.place, around.rank, around.size,
                                Device(around.local_rank % std::max(devices, 1), caller), options, operation, caller));
}

Communicator Communicator::from_file(const std::filesystem::path& file, int rank, int size, const Device& device,
                                     const CommunicatorOptions& options, std::source_location caller)
{
    return Communicator(join_at({.file = file}, rank, size, device, options, "Communicator::from_file", caller));
}

Communicator Communicator::from_address(const std::string& host, int port, int rank, int size, const Device& device,
                                        const CommunicatorOptions& options, std::source_location caller)
{
    return Communicator(
        join_at({.host = host, .port = port}, rank, size, device, options, "Communicator::from_address", caller));
}

Communicator Communicator::from_broadcast(int rank, int size, int device,
                                          const std::function<std::string(const std::string& text)>& broadcast,
                                          const CommunicatorOptions& options, std::source_location caller)
{
    constexpr std::string_view operation = "Communicator::from_broadcast";
    bool has_called = false;
    const auto counted = [&](const std::string& text) {
        has_called = true;
        return broadcast(text);
    };
    try {
        return Communicator(
            join_at({.broadcast = counted}, rank, size, Device(device, caller), options, operation, caller));
    } catch (const Error& error) {
        // The others wait in the broadcast.
        if (!has_called) {
            constexpr std::size_t most = 400;
            std::string reason(error.message().substr(0, most));
            std::replace(reason.begin(), reason.end(), '\n', ' ');
            broadcast(rank == 0 ? detail::broadcast_of_failure(reason) : std::string());
        }
        throw;
    }
}

std::vector<Communicator> Communicator::of_devices(std::span<const int> devices, const CommunicatorOptions& options,
                                                   std::source_location caller)
{
    constexpr std::string_view operation = "Communicator::of_devices";
    require_options(options, operation, caller);
    std::vector<int> sorted(devices.begin(), devices.end());
    std::sort(sorted.begin(), sorted.end());
    if (const auto twice = std::adjacent_find(sorted.begin(), sorted.end()); twice != sorted.end() || sorted.empty()) {
        raise(ErrorCode::invalid_argument, operation, caller,
              sorted.empty() ? std::string("there are no devices") : fmt::format("device {} is named twice", *twice),
              "each device once");
    }
    const Nccl& nccl = Nccl::get(operation, caller);
    const auto size = static_cast<int>(devices.size());
    const auto shared = std::make_shared<detail::SharedStatuses>(size);
    const detail::NcclId id = new_id(nccl, operation, caller);
    // Joining waits for all ranks.
    std::vector<std::shared_ptr<CommunicatorState>> states(devices.size());
    std::vector<std::exception_ptr> errors(devices.size());
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < devices.size(); ++i) {
        threads.emplace_back([&, i] {
            const auto rank = static_cast<int>(i);
            try {
                states[i] = join(nccl, id, rank, size, Device(devices[i], caller), options,
                                 detail::make_local_peers(shared, rank), operation, caller);
            } catch (const std::exception& error) {
                shared->fail(rank, error.what());
                errors[i] = std::current_exception();
            }
        });
    }
    for (std::thread& thread : threads) {
        thread.join();
    }
    // The cause, not those who heard of it.
    if (const auto failure = shared->failure(); failure && failure->rank >= 0) {
        std::swap(errors.front(), errors[static_cast<std::size_t>(failure->rank)]);
    }
    for (const std::exception_ptr& error : errors) {
        if (error) {
            std::rethrow_exception(error);
        }
    }
    std::vector<Communicator> communicators;
    communicators.reserve(devices.size());
    for (auto& state : states) {
        communicators.push_back(Communicator(std::move(state)));
    }
    return communicators;
}

Communicator Communicator::borrow(ncclComm* communicator, const CommunicatorOptions& options,
                                  std::source_location caller)
{
    return Communicator(take(communicator, false, options, "Communicator::borrow", caller));
}

Communicator Communicator::adopt(ncclComm* communicator, const CommunicatorOptions& options,
                                 std::source_location caller)
{
    return Communicator(take(communicator, true, options, "Communicator::adopt", caller));
}

int Communicator::rank() const noexcept { return state_->rank(); }
int Communicator::size() const noexcept { return state_->size(); }
Device Communicator::device() const { return state_->device(); }
bool Communicator::uses_copy_engines() const noexcept { return state_->uses_copies(); }
ncclComm* Communicator::get() const noexcept { return state_->comm(); }

void Communicator::synchronize(StreamRef stream, std::source_location caller) const
{
    state_->synchronize(stream, "Communicator::synchronize", caller);
}

void Communicator::abort(const std::string& reason) const noexcept { state_->abort(reason); }

std::string Communicator::describe() const { return state_->describe(); }

}  // namespace tessera::distributed
