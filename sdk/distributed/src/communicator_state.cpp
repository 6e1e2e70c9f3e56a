#include "communicator_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "tessera/error.hpp"

namespace tessera::distributed::detail {
namespace {

using namespace std::chrono_literals;
using tessera::detail::check;
using tessera::detail::CurrentDevice;

constexpr auto longest_spin = 200us;  // a wait as short as that is not worth a sleep
constexpr auto short_sleep = 50us;
constexpr auto look_interval = 1ms;       // for failures of others, while waiting
constexpr auto leavers_interval = 500ms;  // for ranks that are gone
constexpr auto ask_patience = 1000ms;     // until the others have said how far they are
constexpr auto last_patience = 2000ms;    // for NCCL to end after a failure

std::string list_of(const std::vector<int>& ranks)
{
    std::string text = ranks.size() == 1 ? "rank " : "ranks ";
    for (std::size_t i = 0; i < ranks.size(); ++i) {
        text += fmt::format("{}{}", i == 0 ? "" : i + 1 == ranks.size() ? " and " : ", ", ranks[i]);
    }
    return text;
}

}  // namespace

CommunicatorState::CommunicatorState(Parts parts, const std::source_location& caller)
    : parts_(std::move(parts)), stream_(parts_.device, StreamPriority::most_urgent(parts_.device, caller), caller)
{
    const CurrentDevice current(parts_.device.ordinal(), "Communicator", caller);
    check(cudaMalloc(&exchange_, exchange_bytes * static_cast<std::size_t>(parts_.size)), "cudaMalloc", "Communicator",
          caller);
}

CommunicatorState::~CommunicatorState()
{
    const bool has_ended = quiesce();
    if (has_ended) {  // a free waits for the device
        tessera::detail::drop(cudaFree(exchange_), "cudaFree");
    }
    if (has_failed() || !has_ended || parts_.peers->failure()) {
        abort_nccl();
        return;
    }
    while (!branches_.empty()) {
        if (!end_regularly(branches_.front().comm)) {
            abort_nccl();
            return;
        }
        branches_.pop_front();
    }
    if (parts_.comm != nullptr && parts_.is_owned && !end_regularly(parts_.comm)) {
        abort_nccl();
    }
}

bool CommunicatorState::end_regularly(ncclComm* comm) noexcept
{
    NcclResult result = nccl().comm_finalize(comm);
    const auto end = Clock::now() + std::min<Clock::duration>(parts_.options.timeout, last_patience);
    while (result == NcclResult::success || result == NcclResult::in_progress) {
        if (nccl().comm_get_async_error(comm, &result) != NcclResult::success) {
            result = NcclResult::internal_error;
        }
        if (result == NcclResult::success) {
            nccl().comm_destroy(comm);
            return true;
        }
        if (Clock::now() > end) {
            break;
        }
        std::this_thread::sleep_for(short_sleep);
    }
    return false;
}

NcclResult CommunicatorState::async_result() const
{
    const auto result_of = [this](ncclComm* comm) {
        NcclResult state = NcclResult::success;
        const NcclResult asked = nccl().comm_get_async_error(comm, &state);
        return asked == NcclResult::success ? state : asked;
    };
    NcclResult result = result_of(parts_.comm);
    for (const Branch& branch : branches_) {
        if (result != NcclResult::success) {
            break;
        }
        result = branch.comm == nullptr ? NcclResult::success : result_of(branch.comm);
    }
    return result;
}

void CommunicatorState::connect(const Line& line, std::string_view operation, const std::source_location& caller)
{
    if (line.ranks == 1 || line.ranks == size() || comm_of(line) != nullptr) {
        return;
    }
    begin_operation(operation, caller);
    const CurrentDevice current(device().ordinal(), operation, caller);
    branches_.push_back({line.ranks, line.stride, nullptr});
    Branch& branch = branches_.back();
    require(nccl().comm_split(parts_.comm, line.first, line.rank, &branch.comm, nullptr), "ncclCommSplit", operation,
            caller);
    if (branch.comm == nullptr) {
        fail(rank(), "ncclCommSplit returned no communicator", {}, operation, caller);
    }
    require(NcclResult::in_progress, "ncclCommSplit", operation, caller);  // the new one may still be in the making
    // The first time, NCCL allocates, which a capture would not allow.
    void* const own = static_cast<std::byte*>(exchange_) + exchange_bytes * static_cast<std::size_t>(line.rank);
    require(nccl().all_gather(own, exchange_, exchange_bytes, NcclType::uint8, branch.comm, stream_.get()),
            "ncclAllGather", operation, caller);
    synchronize(stream_, operation, caller);
}

ncclComm* CommunicatorState::comm_of(const Line& line) const noexcept
{
    if (line.ranks == size()) {
        return parts_.comm;
    }
    const auto found = std::find_if(branches_.begin(), branches_.end(), [&line](const Branch& branch) {
        return branch.ranks == line.ranks && branch.stride == line.stride;
    });
    return found == branches_.end() ? nullptr : found->comm;
}

std::string CommunicatorState::text_of(NcclResult result) const
{
    const char* const last = nccl().get_last_error(parts_.comm);
    return fmt::format("{} ({}){}{}", nccl().get_error_string(result), static_cast<int>(result),
                       last == nullptr || *last == '\0' ? "" : ": ", last == nullptr ? "" : last);
}

void CommunicatorState::tell_status(bool is_waiting) noexcept
{
    parts_.peers->tell({.enqueued = enqueued_, .is_waiting = is_waiting});
}

void CommunicatorState::abort_nccl() noexcept
{
    ncclComm* const comm = parts_.is_owned ? std::exchange(parts_.comm, nullptr) : nullptr;
    if (comm == nullptr && branches_.empty()) {
        return;
    }
    // Nothing calls back copy engines that wait for another rank. NCCL would wait for them for ever, and hold locks of the driver
    // meanwhile, so that its communicator is lost.
    if (uses_copies_ && !has_ended()) {
        tessera::detail::drop("Communicator", "NCCL's communicator away: copy engines still wait for another rank");
        return;
    }
    // NCCL waits for its kernels, which end when they see the flag. A device that hangs otherwise must not hold this thread.
    try {
        std::promise<void> ended;
        std::future<void> end = ended.get_future();
        std::thread([&nccl = nccl(), comm, branches = std::exchange(branches_, {}), device = parts_.device.ordinal(),
                     ended = std::move(ended)]() mutable {
            cudaSetDevice(device);
            for (const Branch& branch : branches) {
                if (branch.comm != nullptr) {
                    nccl.comm_abort(branch.comm);
                }
            }
            if (comm != nullptr) {
                nccl.comm_abort(comm);
            }
            ended.set_value();
        }).detach();
        if (end.wait_for(last_patience) != std::future_status::ready) {
            tessera::detail::drop("ncclCommAbort", "nothing, but did not end in time: what NCCL has is lost");
        }
    } catch (const std::exception& error) {
        tessera::detail::drop("Communicator", error.what());
    }
}

bool CommunicatorState::has_ended() const noexcept
{
    const cudaError_t status = cudaStreamQuery(stream_.get());
    tessera::detail::forget(status);
    return status != cudaErrorNotReady;
}

void CommunicatorState::raise_failure(const PeerFailure& failure, std::string_view operation,
                                      const std::source_location& caller)
{
    throw RankError(failure.rank, operation, caller,
                    failure.rank < 0 ? failure.reason
                                     : fmt::format("rank {} of {} failed{}: {}", failure.rank, size(),
                                                   failure.rank == rank() ? " (this one)" : "", failure.reason),
                    "the communicator is aborted: destroy it on all ranks and make a new one");
}

void CommunicatorState::fail(int culprit, const std::string& message, const std::string& cure,
                             std::string_view operation, const std::source_location& caller)
{
    // Of two failures at the same time, all ranks shall name the same.
    parts_.peers->tell_failure(culprit, message);
    failure_ = parts_.peers->failure().value_or(PeerFailure{culprit, message});
    abort_nccl();
    if (failure_->rank != culprit || cure.empty()) {
        raise_failure(*failure_, operation, caller);
    }
    throw RankError(culprit, operation, caller, message, cure);
}

void CommunicatorState::require_intact(std::string_view operation, const std::source_location& caller)
{
    if (!failure_) {
        failure_ = parts_.peers->failure();
        if (failure_) {
            abort_nccl();
        }
    }
    if (failure_) {
        raise_failure(*failure_, operation, caller);
    }
}

void CommunicatorState::look_for_failure(std::string_view operation, const std::source_location& caller)
{
    require_intact(operation, caller);
    const NcclResult state = async_result();
    if (state == NcclResult::success || state == NcclResult::in_progress) {
        return;
    }
    // The rank that is the cause may just be telling so: NCCL only sees that a connection ended.
    const auto end = Clock::now() + ask_patience;
    while (!parts_.peers->failure() && Clock::now() < end) {
        std::this_thread::sleep_for(look_interval);
    }
    require_intact(operation, caller);
    fail(state == NcclResult::remote_error ? -1 : rank(), fmt::format("NCCL reports {}", text_of(state)), {}, operation,
         caller);
}

void CommunicatorState::look_for_leavers(std::string_view operation, const std::source_location& caller)
{
    const std::vector<PeerStatus> statuses = parts_.peers->statuses(ask_patience);
    for (std::size_t other = 0; other < statuses.size(); ++other) {
        if (statuses[other].has_left && statuses[other].enqueued < enqueued_) {
            fail(static_cast<int>(other),
                 fmt::format("rank {} of {} left after {} of {} collective operations", other, size(),
                             statuses[other].enqueued, enqueued_),
                 "call what is collective on all ranks, in the same order", operation, caller);
        }
    }
}

void CommunicatorState::raise_timeout(std::string_view what, std::string_view operation,
                                      const std::source_location& caller)
{
    const double seconds = std::chrono::duration<double>(parts_.options.timeout).count();
    const std::vector<PeerStatus> statuses = parts_.peers->statuses(ask_patience);
    std::vector<int> behind;
    std::vector<int> elsewhere;
    std::uint64_t least = enqueued_;
    for (std::size_t other = 0; other < statuses.size(); ++other) {
        if (static_cast<int>(other) == rank()) {
            continue;
        }
        if (statuses[other].enqueued < enqueued_) {
            behind.push_back(static_cast<int>(other));
            least = std::min(least, statuses[other].enqueued);
        } else if (!statuses[other].is_waiting) {
            elsewhere.push_back(static_cast<int>(other));
        }
    }
    std::string message = fmt::format("{} did not end within {:g} s on rank {} of {}", what, seconds, rank(), size());
    std::string cure = "raise CommunicatorOptions::timeout if the work takes longer";
    int culprit = -1;
    if (!behind.empty()) {
        culprit = behind.front();
        message += fmt::format(": {} began only {} of the {} collective operations", list_of(behind), least, enqueued_);
        cure = "call what is collective on all ranks, in the same order; " + cure;
    } else if (!elsewhere.empty()) {
        culprit = elsewhere.front();
        message += fmt::format(": {} does not wait for it, and may hang elsewhere", list_of(elsewhere));
    } else if (statuses.empty()) {
        message += ": it is not known which rank is the cause";
    } else {
        message += ": all ranks wait, so that a kernel or NCCL hangs";
    }
    fail(culprit, message, cure, operation, caller);
}

void CommunicatorState::wait_until(const std::function<bool()>& done, std::string_view what, std::string_view operation,
                                   const std::source_location& caller)
{
    if (done()) {
        return;
    }
    const auto start = Clock::now();
    auto next_look = start + look_interval;
    auto next_leavers = start + leavers_interval;
    bool has_told = false;
    while (!done()) {
        const auto now = Clock::now();
        if (now - start > parts_.options.timeout) {
            raise_timeout(what, operation, caller);
        }
        if (now > next_look) {
            if (!std::exchange(has_told, true)) {
                tell_status(true);
            }
            look_for_failure(operation, caller);
            next_look = now + look_interval;
        }
        if (now > next_leavers) {
            look_for_leavers(operation, caller);
            next_leavers = Clock::now() + leavers_interval;
        }
        if (now - start > longest_spin) {
            std::this_thread::sleep_for(short_sleep);
        } else {
            std::this_thread::yield();
        }
    }
    if (has_told) {
        tell_status(false);
    }
}

void CommunicatorState::begin_operation(std::string_view operation, const std::source_location& caller)
{
    require_intact(operation, caller);
    ++enqueued_;
    tell_status(false);
}

void CommunicatorState::require(NcclResult result, const char* call, std::string_view operation,
                                const std::source_location& caller)
{
    if (result != NcclResult::success && result != NcclResult::in_progress) {
        require_intact(operation, caller);
        fail(rank(), fmt::format("{} returned {}", call, text_of(result)), {}, operation, caller);
    }
    // Some calls (ncclCommWindowRegister) return success while a thread of NCCL's still carries them out.
    wait_until([this] { return async_result() == NcclResult::success; }, call, operation, caller);
}

void CommunicatorState::group(const std::function<NcclResult()>& calls, std::string_view operation,
                              const std::source_location& caller)
{
    require(nccl().group_start(), "ncclGroupStart", operation, caller);
    const NcclResult called = calls();
    const NcclResult ended = nccl().group_end();
    if (called != NcclResult::success && called != NcclResult::in_progress) {
        require(called, "a call in a group of NCCL's", operation, caller);
    }
    require(ended, "ncclGroupEnd", operation, caller);
}

void CommunicatorState::finish_making(std::string_view operation, const std::source_location& caller)
{
    const CurrentDevice current(device().ordinal(), operation, caller);
    require(NcclResult::in_progress, "joining the communicator", operation, caller);
    // Each rank's memory is in the window or none is: NCCL returns no window where copy engines cannot be used.
    if (parts_.options.copy_engines && nccl().has_copies && parts_.is_owned && size() > 1) {
        uses_copies_ = true;
        const std::size_t part = 256;
        RegisteredRange* const probe = allocate(part * static_cast<std::size_t>(size()), true, operation, caller);
        uses_copies_ = probe->window != nullptr;
        if (uses_copies_) {  // the first time, NCCL allocates, which a capture would not allow
            void* const own = static_cast<std::byte*>(probe->data) + part * static_cast<std::size_t>(rank());
            begin_operation(operation, caller);
            require(nccl().all_gather(own, probe->data, part, NcclType::uint8, comm(), stream_.get()), "ncclAllGather",
                    operation, caller);
            synchronize(stream_, operation, caller);
        }
        free(probe);
    }
}

void CommunicatorState::synchronize(StreamRef stream, std::string_view operation, const std::source_location& caller)
{
    tessera::detail::require_same_device(operation, caller, "the communicator", device().ordinal(), "the stream",
                                         stream.device());
    require_intact(operation, caller);
    wait_until(
        [&] {
            const cudaError_t status = cudaStreamQuery(stream.get());
            if (status == cudaErrorNotReady) {
                tessera::detail::forget(status);
                return false;
            }
            if (status != cudaSuccess) {
                abort(fmt::format("work on its device failed: {}", cudaGetErrorString(status)));
                check(status, "cudaStreamQuery", operation, caller);
            }
            return true;
        },
        "the work on the stream", operation, caller);
    // NCCL's kernels end when it is aborted, so that work which has ended need not be right.
    look_for_failure(operation, caller);
}

bool CommunicatorState::quiesce() noexcept
{
    const auto end = Clock::now() + (has_failed() ? std::min<Clock::duration>(last_patience, parts_.options.timeout)
                                                  : Clock::duration(parts_.options.timeout));
    try {
        const CurrentDevice current(device().ordinal(), "Communicator", std::source_location::current());
        while (true) {
            const cudaError_t status = cudaStreamQuery(stream_.get());
            if (status != cudaErrorNotReady) {
                return status == cudaSuccess;
            }
            tessera::detail::forget(status);
            if (Clock::now() > end || (!has_failed() && parts_.peers->failure())) {
                return false;
            }
            std::this_thread::sleep_for(short_sleep);
        }
    } catch (const std::exception& error) {
        tessera::detail::drop("Communicator", error.what());
        return false;
    }
}

void CommunicatorState::abort(const std::string& reason) noexcept { parts_.peers->tell_failure(rank(), reason); }

RegisteredRange* CommunicatorState::allocate(std::size_t bytes, bool registers, std::string_view operation,
                                             const std::source_location& caller)
{
    constexpr std::size_t page = 4096;  // NCCL_WIN_REQUIRED_ALIGNMENT
    const std::size_t rounded = std::max(page, (bytes + page - 1) / page * page);
    begin_operation(operation, caller);
    const CurrentDevice current(device().ordinal(), operation, caller);
    RegisteredRange range{.bytes = bytes};
    if (!uses_copies_ || !registers) {
        check(cudaMalloc(&range.data, rounded), "cudaMalloc", operation, caller);
        ranges_.push_back(range);
        return &ranges_.back();
    }
    if (const NcclResult result = nccl().mem_alloc(&range.data, rounded); result != NcclResult::success) {
        abort(fmt::format("ncclMemAlloc of {} bytes returned {}", rounded, text_of(result)));
        tessera::detail::raise(ErrorCode::out_of_memory, operation, caller,
                               fmt::format("ncclMemAlloc of {} bytes returned {}", rounded, text_of(result)),
                               "free memory or use a smaller problem");
    }
    range.is_of_nccl = true;
    ranges_.push_back(range);
    RegisteredRange& kept = ranges_.back();
    require(nccl().window_register(parts_.comm, kept.data, rounded, &kept.window, nccl_symmetric_window),
            "ncclCommWindowRegister", operation, caller);
    return &kept;
}

void CommunicatorState::free(RegisteredRange* range) noexcept
{
    try {
        const CurrentDevice current(device().ordinal(), "ShardedGemm", std::source_location::current());
        const bool has_ended = quiesce();
        if (range->window != nullptr && parts_.comm != nullptr) {
            NcclResult result = nccl().window_deregister(parts_.comm, range->window);
            for (const auto end = Clock::now() + last_patience;
                 result == NcclResult::in_progress && Clock::now() < end;) {
                std::this_thread::sleep_for(short_sleep);
                result = async_result();
            }
        }
        // Freeing waits for the device: memory of one that hangs is lost instead.
        if (!has_ended) {
            tessera::detail::drop("ShardedGemm", "memory away: the device did not end its work");
        } else if (range->is_of_nccl) {
            nccl().mem_free(range->data);
        } else {
            tessera::detail::drop(cudaFree(range->data), "cudaFree");
        }
    } catch (const std::exception& error) {
        tessera::detail::drop("ShardedGemm", error.what());
    }
    ranges_.remove_if([range](const RegisteredRange& each) { return &each == range; });
}

std::string CommunicatorState::describe() const
{
    return fmt::format("rank {} of {} on device {} ({}), NCCL {}, data moved by {}", rank(), size(), device().ordinal(),
                       device().properties().name, nccl().version_text(),
                       uses_copies_                  ? std::string("copy engines")
                       : parts_.options.max_ctas > 0 ? fmt::format("kernels of at most {} CTAs", options().max_ctas)
                                                     : std::string("kernels"));
}

}  // namespace tessera::distributed::detail
