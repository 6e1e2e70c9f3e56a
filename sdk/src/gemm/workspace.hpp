#pragma once

/// Device memory that launches need besides their operands: partial sums of tiles that several clusters share, counters
/// of the parts that have arrived, and copies of repacked operands.
///
/// Rules:
///   - Launches of one stream follow each other and share one piece of memory. The first launch that needs it allocates
///     it, and later ones enlarge it, both in the order of the stream. A launch that finds it large enough allocates
///     nothing.
///   - A captured launch uses memory of its graph, which it shares only with launches that the graph orders before or
///     after it. The memory is freed when the graph and all executables made from it are gone.
///   - Counters are zero before a launch, and each kernel leaves them zero. Sums and copies have no defined content.
///   - A caller's workspace has the same layout. Its counters are cleared before each launch, because the caller may
///     use the memory for other things.
///   - A `Stream` frees its memory when it is destroyed. The memory of raw streams, and of a `Stream` that is destroyed
///     while it is being captured, stays until `release_workspaces()`, until a device has had `max_streams` newer
///     streams, or until the process ends.

#include <cstddef>
#include <mutex>
#include <source_location>
#include <string_view>
#include <utility>

#include "gemm/backend.hpp"
#include "tessera/memory_resource.hpp"
#include "tessera/stream.hpp"
#include "tessera/workspace.hpp"

namespace tessera::detail {

/// Number of streams per device whose memory is kept.
inline constexpr std::size_t max_streams = 64;

struct CapturedBlock;

/// A launch's workspace. While it exists, the device's other launches that need one wait, so that none of them replaces
/// the memory before the kernel is enqueued. Drop it right after the launch, before anything else is enqueued on the
/// stream.
class WorkspaceLease {
public:
    WorkspaceLease() = default;
    WorkspaceLease(std::unique_lock<std::mutex> lock, WorkspaceMemory memory, cudaStream_t stream,
                   CapturedBlock* captured) noexcept
        : lock_(std::move(lock)), memory_(memory), stream_(stream), captured_(captured)
    {}
    /// A lease of the caller's memory.
    explicit WorkspaceLease(WorkspaceMemory memory) noexcept : memory_(memory) {}
    ~WorkspaceLease();
    WorkspaceLease(const WorkspaceLease&) = delete;
    WorkspaceLease& operator=(const WorkspaceLease&) = delete;

    WorkspaceMemory memory() const noexcept { return memory_; }

private:
    std::unique_lock<std::mutex> lock_;
    WorkspaceMemory memory_{};
    cudaStream_t stream_ = nullptr;
    CapturedBlock* captured_ = nullptr;  // null: not captured
};

/// Returns what a launch of any variant needs.
inline WorkspaceNeed workspace_need(const GemmProblem& problem, const KernelChoice& choice)
{
    return backend_of(choice.variant).workspace(problem, choice);
}

/// Returns the size of a workspace in bytes.
std::size_t workspace_bytes(WorkspaceNeed need) noexcept;

/// Checks that `workspace`, if it is the caller's or has a limit, meets `need`.
/// @throws Error `out_of_range`, `misaligned`, `device_mismatch`
void require_workspace(StreamRef stream, const Workspace& workspace, WorkspaceNeed need, std::string_view operation,
                       const std::source_location& caller);

/// Returns memory for one launch on `stream`, whose device must be current; empty if nothing is needed. Clears the
/// counters of a caller's memory, which must have been checked.
/// @throws Error `out_of_memory`, `cuda_failure`, `capture_violation` if the capture is broken already, and what a
///               memory resource throws
WorkspaceLease lease_workspace(StreamRef stream, WorkspaceNeed need, const Workspace& workspace,
                               std::string_view operation, const std::source_location& caller);

/// Sets where memory for `device`'s streams comes from, from now on; an empty reference means the device's pool.
void set_workspace_resource(int device, MemoryResourceRef resource, std::string_view operation,
                            const std::source_location& caller);

/// Frees the memory of `stream` on device `ordinal`, in the stream's order, unless it is being captured. The device
/// need not be current.
void release_workspace(cudaStream_t stream, int ordinal) noexcept;

/// Frees the memory of graphs that are gone. CUDA's callbacks must not call this, since they must not call CUDA.
void release_retired_workspaces() noexcept;

/// Waits for every device that has workspaces, then frees all of them except those of graphs that are alive.
void release_all_workspaces() noexcept;

}  // namespace tessera::detail
