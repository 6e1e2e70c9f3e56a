#pragma once

/// `Workspace`: where a product keeps what it needs besides its operands: sums of tiles that several clusters share, and
/// copies of operands that are repacked. Most products need none; `GemmPlan::workspace_bytes()` tells.

#include <concepts>
#include <cstddef>

#include "tessera/device_span.hpp"

namespace tessera {

/// Says whose memory the workspace of a launch is, and how much there may be.
///
///     const auto plan = GemmPlan::prepare(device, problem);
///     DeviceBuffer<std::byte> scratch(stream, plan.workspace_bytes());
///     plan.launch(stream, a, b, d, {}, scratch);
///
/// Memory of the caller's is at a multiple of `Workspace::alignment` bytes, of the stream's device, and apart from the
/// operands. It may hold anything before and holds anything afterwards: what must be zero is cleared by the launch,
/// with a memset before the kernel. From the launch on, and until it has run, it is the launch's: launches that may run
/// at the same time need one each, and a captured launch uses it each time its graph runs.
///
/// Thread safety: a value.
class Workspace {
public:
    /// What the address of a caller's memory is a multiple of, in bytes. That of a buffer is.
    static constexpr std::size_t alignment = 256;

    /// The library's own: a block for each stream, allocated at the first launch that needs it and kept; for captured
    /// launches a block of the graph.
    Workspace() = default;

    /// The caller's. An empty span means that there is none: a kernel that needs none is chosen.
    Workspace(DeviceSpan<std::byte> memory) noexcept : memory_(memory), limit_(memory.size()), is_callers_(true) {}

    /// The caller's: all of a buffer of bytes, which is still the buffer's.
    template <class Buffer>
        requires requires(Buffer& buffer) {
            { buffer.span() } -> std::same_as<DeviceSpan<std::byte>>;
        }
    Workspace(Buffer& buffer) noexcept : Workspace(buffer.span())
    {}

    /// The library's own, of at most `bytes`: a kernel that needs no more is chosen, even if it is slower. 0 means that
    /// a launch never allocates.
    static Workspace at_most(std::size_t bytes) noexcept
    {
        Workspace workspace;
        workspace.limit_ = bytes;
        return workspace;
    }

    /// True if the memory is the caller's.
    bool is_callers() const noexcept { return is_callers_; }
    /// The caller's memory.
    DeviceSpan<std::byte> memory() const noexcept { return memory_; }
    /// The most that a launch may need, in bytes.
    std::size_t limit() const noexcept { return limit_; }

private:
    DeviceSpan<std::byte> memory_;
    std::size_t limit_ = static_cast<std::size_t>(-1);
    bool is_callers_ = false;
};

}  // namespace tessera
