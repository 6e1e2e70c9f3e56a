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
///   - A caller's workspace has the same layout. Its counters are cleared before each launch, since it may have been
///     used for anything.
///   - A `Stream` gives its memory back when it is destroyed. The memory of raw streams, and of a `Stream` that is
///     destroyed while it is being captured, stays until `release_workspaces()`, until a device has had `max_streams`
///     newer ones, or until the process ends.

#include <cstddef>
#include <mutex>
#include <source_location>
#include <string_view>
#include <utility>

#include "hopper_launch.hpp"
#include "tessera/memory_resource.hpp"
#include "tessera/stream.hpp"
#include "tessera/workspace.hpp"

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
    /// Of the caller's memory.
    explicit WorkspaceLease(HopperMemory memory) noexcept : memory_(memory) {}
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

/// What a launch of any variant needs.
inline HopperWorkspaceNeed workspace_need(const GemmProblem& problem, const KernelChoice& choice)
{
    return choice.variant == Variant::hopper ? hopper_workspace(problem, choice) : HopperWorkspaceNeed{};
}

/// Bytes of a workspace.
std::size_t workspace_bytes(HopperWorkspaceNeed need) noexcept;

/// Checks that a launch which needs `need` can have it in `workspace`, if that is the caller's or has a limit.
/// @throws Error `out_of_range`, `misaligned`, `device_mismatch`
void require_workspace(StreamRef stream, const Workspace& workspace, HopperWorkspaceNeed need,
                       std::string_view operation, const std::source_location& caller);

/// Memory for one launch on `stream`, whose device is current. Empty if nothing is needed. In a caller's memory, which
/// is checked, the counters are cleared.
/// @throws Error `out_of_memory`, `cuda_failure`, `capture_violation` if the capture is broken already, and what a
///               memory resource throws
WorkspaceLease lease_workspace(StreamRef stream, HopperWorkspaceNeed need, const Workspace& workspace,
                               std::string_view operation, const std::source_location& caller);

/// Where the memory of `device`'s streams comes from, from now on; an empty reference means the device's pool.
void set_workspace_resource(int device, MemoryResourceRef resource, std::string_view operation,
                            const std::source_location& caller);

/// Gives back what `stream` of device `ordinal` has, in its order, unless it is being captured. The device need not be
/// current.
void release_workspace(cudaStream_t stream, int ordinal) noexcept;

/// Gives back the memory of graphs that are gone. Never called by CUDA's callbacks, which must not call CUDA.
void release_retired_workspaces() noexcept;

/// Waits for every device that has workspaces and gives all of them back, but for those of graphs that are alive.
void release_all_workspaces() noexcept;

}  // namespace tessera::detail
