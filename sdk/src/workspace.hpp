#pragma once

/// Device memory that launches need besides their operands: sums of tiles that several clusters share, counters of how
/// many have been added, and copies of operands that are repacked.
///
/// Rules:
///   - Launches of one stream follow each other and share one piece of memory. It is made at the first launch that
///     needs it and grows, both in the order of the stream; a launch that finds it large enough allocates nothing.
///   - A captured launch uses memory of its graph, shared only with launches that the graph puts before or after it. It
///     is given back when the graph and all executables made of it are gone.
///   - Counters are zero before a launch, and each kernel leaves them zero. Sums and copies may be anything.
///   - A `Stream` gives its memory back when it is destroyed. The memory of raw streams, and of a `Stream` that is
///     destroyed while it is being captured, stays until `release_workspaces()`, until a device has had `max_streams`
///     newer ones, or until the process ends.

#include <cstddef>
#include <mutex>
#include <source_location>
#include <string_view>
#include <utility>

#include "hopper_launch.hpp"
#include "tessera/stream.hpp"

namespace tessera::detail {

/// Streams per device whose memory is kept.
inline constexpr std::size_t max_streams = 64;

struct CapturedBlock;

/// A launch's workspace. The device's other launches that need one wait while it lives, so that none of them replaces
/// the memory before the kernel has been enqueued: drop it right after the launch, before anything else is enqueued on
/// the stream.
class WorkspaceLease {
public:
    WorkspaceLease() = default;
    WorkspaceLease(std::unique_lock<std::mutex> lock, HopperMemory memory, cudaStream_t stream,
                   CapturedBlock* captured) noexcept
        : lock_(std::move(lock)), memory_(memory), stream_(stream), captured_(captured)
    {}
    ~WorkspaceLease();
    WorkspaceLease(const WorkspaceLease&) = delete;
    WorkspaceLease& operator=(const WorkspaceLease&) = delete;

    HopperMemory memory() const noexcept { return memory_; }

private:
    std::unique_lock<std::mutex> lock_;
    HopperMemory memory_{};
    cudaStream_t stream_ = nullptr;
    CapturedBlock* captured_ = nullptr;  // null: not of a capture
};

/// Memory for one launch on `stream`, whose device is current. Empty if nothing is needed.
/// @throws Error `out_of_memory`, `cuda_failure`, `capture_violation` if the capture is broken already
WorkspaceLease lease_workspace(StreamRef stream, HopperWorkspaceNeed need, std::string_view operation,
                               const std::source_location& caller);

/// Gives back what `stream` of device `ordinal` has, in its order, unless it is being captured. The device need not be
/// current.
void release_workspace(cudaStream_t stream, int ordinal) noexcept;

/// Gives back the memory of graphs that are gone. Never called by CUDA's callbacks, which must not call CUDA.
void release_retired_workspaces() noexcept;

/// Waits for every device that has workspaces and gives all of them back, but for those of graphs that are alive.
void release_all_workspaces() noexcept;

}  // namespace tessera::detail
