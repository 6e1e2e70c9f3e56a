#pragma once

// What a Communicator, its plans and its memory share.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <source_location>
#include <string>
#include <string_view>

#include "line.hpp"
#include "nccl.hpp"
#include "peers.hpp"
#include "tessera/distributed/communicator.hpp"
#include "tessera/stream.hpp"

namespace tessera::distributed::detail {

/// Memory that copy engines of other ranks reach.
struct RegisteredRange {
    void* data = nullptr;
    std::size_t bytes = 0;
    NcclWindow window = nullptr;
    bool is_of_nccl = false;  // allocated by ncclMemAlloc
};

class CommunicatorState : public std::enable_shared_from_this<CommunicatorState> {
public:
    struct Parts {
        const Nccl* nccl;
        ncclComm* comm;
        bool is_owned;
        int rank;
        int size;
        Device device;
        CommunicatorOptions options;
        std::shared_ptr<Peers> peers;
    };

    /// `comm` may still be in the making: `finish_making` waits for it.
    CommunicatorState(Parts parts, const std::source_location& caller);
    CommunicatorState(const CommunicatorState&) = delete;
    CommunicatorState& operator=(const CommunicatorState&) = delete;
    ~CommunicatorState();

    /// Waits until all ranks have joined, and finds out whether copy engines can be used. Collective.
    void finish_making(std::string_view operation, const std::source_location& caller);

    const Nccl& nccl() const noexcept { return *parts_.nccl; }
    /// Of all ranks.
    ncclComm* comm() const noexcept { return parts_.comm; }
    /// Makes a communicator of these ranks, if there is none yet. All ranks call it, each with the line that it is in.
    void connect(const Line& line, std::string_view operation, const std::source_location& caller);
    /// Returns the communicator of these ranks, which were connected or are all.
    ncclComm* comm_of(const Line& line) const noexcept;
    int rank() const noexcept { return parts_.rank; }
    int size() const noexcept { return parts_.size; }
    const Device& device() const noexcept { return parts_.device; }
    const CommunicatorOptions& options() const noexcept { return parts_.options; }
    Peers& peers() const noexcept { return *parts_.peers; }
    bool uses_copies() const noexcept { return uses_copies_; }
    /// The stream of communication that runs beside products.
    const Stream& stream() const noexcept { return stream_; }

    /// @throws RankError if the communicator has failed
    void require_intact(std::string_view operation, const std::source_location& caller);
    bool has_failed() const noexcept { return failure_.has_value(); }

    /// Tells the others that this rank begins a collective operation.
    void begin_operation(std::string_view operation, const std::source_location& caller);
    /// Takes the result of a call of NCCL's, and waits until NCCL has enqueued what was called for.
    void require(NcclResult result, const char* call, std::string_view operation, const std::source_location& caller);
    /// Enqueues a group of NCCL's calls, of which `calls` makes some and returns the first result that is no success.
    void group(const std::function<NcclResult()>& calls, std::string_view operation,
               const std::source_location& caller);

    /// Waits for all work on `stream`.
    void synchronize(StreamRef stream, std::string_view operation, const std::source_location& caller);
    /// Waits for all work on both streams of a plan that is destroyed, in any case not for ever. Returns false if it did not end.
    bool quiesce() noexcept;

    /// Tells all ranks that this one failed. From any thread.
    void abort(const std::string& reason) noexcept;

    /// `registers`: copy engines of other ranks shall reach it, if they can.
    RegisteredRange* allocate(std::size_t bytes, bool registers, std::string_view operation,
                              const std::source_location& caller);
    void free(RegisteredRange* range) noexcept;
    /// Device memory with `exchange_bytes` for each rank. Not allocated when it is used: in one process, a free on one device may wait
    /// for the other device, and that for this rank.
    static constexpr std::size_t exchange_bytes = 256;
    void* exchange_memory() const noexcept { return exchange_; }

    std::string describe() const;

private:
    using Clock = std::chrono::steady_clock;

    /// A communicator of some of the ranks.
    struct Branch {
        int ranks;
        int stride;
        ncclComm* comm;  // null while it is in the making: NCCL writes it, so that the address must stay
    };

    /// Waits until `done()`. Ends if a rank fails or time is up.
    void wait_until(const std::function<bool()>& done, std::string_view what, std::string_view operation,
                    const std::source_location& caller);
    void look_for_failure(std::string_view operation, const std::source_location& caller);
    void look_for_leavers(std::string_view operation, const std::source_location& caller);
    [[noreturn]] void raise_timeout(std::string_view what, std::string_view operation,
                                    const std::source_location& caller);
    /// Ends the communicator here and tells the others, and throws.
    [[noreturn]] void fail(int rank, const std::string& message, const std::string& cure, std::string_view operation,
                           const std::source_location& caller);
    [[noreturn]] void raise_failure(const PeerFailure& failure, std::string_view operation,
                                    const std::source_location& caller);
    bool end_regularly(ncclComm* comm) noexcept;
    void abort_nccl() noexcept;
    bool has_ended() const noexcept;
    NcclResult async_result() const;
    std::string text_of(NcclResult result) const;
    void tell_status(bool is_waiting) noexcept;

    Parts parts_;
    std::list<Branch> branches_;
    Stream stream_;
    bool uses_copies_ = false;
    std::uint64_t enqueued_ = 0;
    std::list<RegisteredRange> ranges_;
    std::optional<PeerFailure> failure_;
    void* exchange_ = nullptr;
};

}  // namespace tessera::distributed::detail
