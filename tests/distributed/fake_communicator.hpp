#pragma once

#include <cuda_runtime_api.h>

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "fake_region.hpp"
#include "nccl.hpp"

namespace fake_nccl {

using tessera::distributed::detail::NcclConfig;
using tessera::distributed::detail::NcclResult;
using tessera::distributed::detail::NcclType;

}  // namespace fake_nccl

/// A rank of a stand-in communicator.
struct ncclComm {
    ncclComm(const std::string& path, int size_of_group, int own_rank, const fake_nccl::NcclConfig& given);
    ~ncclComm();
    ncclComm(const ncclComm&) = delete;
    ncclComm& operator=(const ncclComm&) = delete;

    /// Does `work` as NCCL does: at once, or in a thread, while the state is "in progress".
    fake_nccl::NcclResult begin(std::function<fake_nccl::NcclResult()> work);
    void join_thread();
    /// Waits until `done()`, unless the communicator is aborted.
    bool wait(const std::function<bool()>& done) const;
    bool is_aborted() const { return aborted; }

    // Parts of a message are at most a slot long.
    void enqueue_send(const std::byte* from, std::size_t bytes, int to, cudaStream_t stream);
    void enqueue_receive(std::byte* to, std::size_t bytes, int from, cudaStream_t stream);
    /// Writes this rank's part into all ranks' memory by copies, as early as NCCL's copy engines may: once all ranks have come here.
    /// @param window  number of the window that is written to
    /// @param offset  of this rank's part in it
    void enqueue_copies(const std::byte* from, std::size_t bytes, std::uint64_t window, std::size_t offset,
                        cudaStream_t stream);
    /// Returns true if all ranks are of this process.
    bool is_in_one_process() const;
    /// Sums what all ranks have sent to this one, into `to`.
    void enqueue_sum(std::byte* to, std::size_t bytes, fake_nccl::NcclType type, cudaStream_t stream);

    fake_nccl::Region region;
    int size;
    int rank;
    int device = 0;
    fake_nccl::NcclConfig config;
    std::atomic<fake_nccl::NcclResult> state{fake_nccl::NcclResult::success};
    std::atomic<bool> aborted{false};
    std::uint64_t windows = 0;
    int splits = 0;
    struct Window {
        const std::byte* begin;
        std::size_t bytes;
        std::uint64_t number;
    };
    std::vector<std::unique_ptr<Window>> registered;

private:
    void on_host(cudaStream_t stream, std::function<void()> work);

    std::thread thread;
    std::mutex mutex;
    std::deque<std::function<void()>> host_work;  // of graphs, too: alive as long as the communicator
};
