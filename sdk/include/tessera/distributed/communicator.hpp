#pragma once

/// @file
/// @ingroup distributed
/// @brief `Communicator`: the GPUs that multiply together, over NCCL.
///
/// NCCL is found at run time; docs/tensor-parallel.md says where. Nothing of it is needed to build.

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tessera/device.hpp"
#include "tessera/error.hpp"
#include "tessera/stream.hpp"

struct ncclComm;  ///< NCCL's own: `ncclComm_t` of nccl.h is a pointer to it

/// Products of matrices that are sharded over several GPUs.
namespace tessera::distributed {

/// What a `Communicator` is made with. The same on all ranks.
struct CommunicatorOptions {
    /// How long a rank waits for the others, in `from_*`, in `Communicator::synchronize` and wherever NCCL needs all of them.
    std::chrono::milliseconds timeout{60'000};
    /// Most CTAs of a kernel of NCCL's, each of which occupies an SM that the product cannot use meanwhile; 0 leaves it to NCCL.
    int max_ctas = 0;
    /// Lets copy engines move the data where NCCL can (2.28 and later, GPUs of one host that reach each other's memory): they
    /// occupy no SM. Otherwise kernels of NCCL's move it.
    bool copy_engines = true;
};

/// An error that ends a communicator, `communication_failed`: another rank failed, died or did not answer in time, or NCCL failed. Nothing more can be
/// done with the communicator then, on any rank.
class RankError : public Error {
public:
    /// For the SDK. `rank` is the rank that failed, -1 if that is not known.
    RankError(int rank, std::string_view operation, std::source_location caller, const std::string& message,
              const std::string& cure = {})
        : Error(ErrorCode::communication_failed, operation, caller, message, cure), rank_(rank)
    {}

    /// Returns the rank that failed, or -1 if it is not known.
    int rank() const noexcept { return rank_; }

private:
    int rank_;
};

namespace detail {
class CommunicatorState;
}  // namespace detail

/// One rank of a group of GPUs that multiply together. Move-only.
///
/// @code{.cpp}
/// auto communicator = Communicator::from_environment();  // one process per GPU, started by torchrun or mpirun
/// @endcode
/// @code{.cpp}
/// auto communicators = Communicator::of_devices({{0, 1}});  // one process; then a thread for each
/// @endcode
///
/// @par Collective calls
/// What is marked *collective* is called by all ranks, in the same order, with the same arguments where nothing else is said.
///
/// @par Failure
/// Waits are bounded by `CommunicatorOptions::timeout`. If a rank throws, leaves or dies, the waits of the others end with a
/// `RankError` that names it. The communicator is aborted then: what was enqueued ends, with undefined results, and every later
/// call throws the same error. `Stream::synchronize` knows nothing of this: wait with `Communicator::synchronize`.
///
/// @par Lifetime
/// Plans made from a communicator keep what they need of it alive. The last to be destroyed ends it: regularly if all
/// went well, otherwise by aborting it. Graphs with products of it must be destroyed before: NCCL waits for them. A communicator
/// that is destroyed while an exception passes tells the other ranks.
///
/// @par Thread safety
/// One thread at a time uses a communicator and its plans. `abort` may be called from any thread.
class Communicator {
public:
    /// Joins the group that the environment describes: RANK, WORLD_SIZE and LOCAL_RANK, as torchrun sets them, or the variables
    /// of Open MPI, MPICH or Slurm. The ranks meet at the file that TESSERA_BOOTSTRAP_FILE names; else at MASTER_ADDR, port
    /// TESSERA_PORT or MASTER_PORT + 1; else, if all are on one host, at a file in the temporary folder. Collective.
    ///
    /// The device is LOCAL_RANK's, modulo the number of devices. Further communicators of a process use further ports.
    /// @throws Error  `invalid_argument` if variables are missing or contradict each other, `no_device`, `communication_failed` if there is
    ///                no NCCL or a too old one; RankError
    static Communicator from_environment(const CommunicatorOptions& options = {},
                                         std::source_location caller = std::source_location::current());

    /// Joins a group of `size` ranks as `rank`, on `device`. They meet by a file that all can reach and that must not exist
    /// before: rank 0 writes it, and removes it when the communicator ends. Collective.
    /// @throws Error  as above
    static Communicator from_file(const std::filesystem::path& file, int rank, int size, const Device& device,
                                  const CommunicatorOptions& options = {},
                                  std::source_location caller = std::source_location::current());

    /// Joins a group of `size` ranks as `rank`, on `device`. They meet at a port of rank 0's host. Collective.
    /// @throws Error  as above
    static Communicator from_address(const std::string& host, int port, int rank, int size, const Device& device,
                                     const CommunicatorOptions& options = {},
                                     std::source_location caller = std::source_location::current());

    /// Joins a group of `size` ranks as `rank`, on the device of this ordinal. They meet by a broadcast that they have already: of MPI, of PyTorch, or by
    /// a store. Collective.
    /// @param broadcast  gives all ranks the text of rank 0, a line of less than 512 characters, and returns it. Called once on each
    ///                   rank, in this call, also if that fails before: on rank 0 with the text, on the others with an empty one. What it
    ///                   throws passes through
    /// @throws Error  as above
    static Communicator from_broadcast(int rank, int size, int device,
                                       const std::function<std::string(const std::string& text)>& broadcast,
                                       const CommunicatorOptions& options = {},
                                       std::source_location caller = std::source_location::current());

    /// Returns a communicator for each of the devices, rank i for devices[i], all in this process. Use each in a thread of its
    /// own.
    /// @throws Error  `invalid_argument` if there are none or one is named twice, and as above
    static std::vector<Communicator> of_devices(std::span<const int> devices, const CommunicatorOptions& options = {},
                                                std::source_location caller = std::source_location::current());

    /// Uses a communicator of NCCL's that somebody else owns and destroys later. Its ranks do not hear of each other's failures:
    /// a wait then ends by the timeout, or when NCCL reports an error, which names no rank.
    ///
    /// NCCL must be the library that `TESSERA_NCCL` names, or the one that the process has loaded.
    /// @throws Error  `communication_failed` if it is not intact
    static Communicator borrow(ncclComm* communicator, const CommunicatorOptions& options = {},
                               std::source_location caller = std::source_location::current());
    /// Takes over a communicator of NCCL's, and destroys it in the end. Otherwise as `borrow`.
    static Communicator adopt(ncclComm* communicator, const CommunicatorOptions& options = {},
                              std::source_location caller = std::source_location::current());

    /// Moves the communicator; `other` can only be destroyed or assigned to afterwards.
    Communicator(Communicator&& other) noexcept;
    /// Gives up this communicator, then moves.
    Communicator& operator=(Communicator&& other) noexcept;
    Communicator(const Communicator&) = delete;
    Communicator& operator=(const Communicator&) = delete;
    /// Tells the other ranks that this one leaves.
    ~Communicator();

    /// Returns this rank: 0 <= rank() < size().
    int rank() const noexcept;
    /// Returns the number of ranks.
    int size() const noexcept;
    /// Returns the device of this rank.
    Device device() const;
    /// Returns true if copy engines move data between the ranks, and false if kernels of NCCL's do.
    bool uses_copy_engines() const noexcept;
    /// Returns NCCL's communicator, for calls of your own; they must not overlap with those of this library.
    ncclComm* get() const noexcept;

    /// Blocks until all work enqueued on `stream` so far is done, as `Stream::synchronize`, but no longer than the timeout, and
    /// ends if another rank fails.
    /// @throws Error  `context_lost` if some of the work failed on this device, which the other ranks then are told; RankError
    void synchronize(StreamRef stream, std::source_location caller = std::source_location::current()) const;

    /// Ends the communicator on all ranks: their waits throw a RankError that names this rank and `reason`. Does not wait.
    void abort(const std::string& reason) const noexcept;

    /// Returns one line for people: rank, size, device, NCCL's version, and what moves data.
    std::string describe() const;

    /// For the SDK.
    const std::shared_ptr<detail::CommunicatorState>& state() const noexcept { return state_; }

private:
    explicit Communicator(std::shared_ptr<detail::CommunicatorState> state) noexcept;
    void leave() noexcept;

    std::shared_ptr<detail::CommunicatorState> state_;
    int exceptions_ = 0;  // that were passing when it was made
};

}  // namespace tessera::distributed
