#pragma once

/// @file
/// @ingroup host_gemm
/// @brief `Workspace`: the memory that a product needs besides its operands.
///
/// It holds the sums of tiles that several clusters share, and copies of operands that are repacked. Most products need
/// none: see `GemmPlan::workspace_bytes()`.

#include <concepts>
#include <cstddef>

#include "tessera/device_span.hpp"

namespace tessera {

/// Says whose memory the workspace of a launch is, and how large it may be.
///
/// @code{.cpp}
/// const auto plan = GemmPlan::prepare(device, problem);
/// DeviceBuffer<std::byte> scratch(stream, plan.workspace_bytes());
/// plan.launch(stream, a16, b16, d16, {}, scratch);
/// @endcode
///
/// The caller's memory must be at a multiple of `Workspace::alignment` bytes, on the stream's device, and apart from
/// the operands. Its contents do not matter before the launch and are undefined after it: what must be zero is cleared
/// by the launch, with a memset before the kernel.
///
/// The launch owns the memory until its kernel has finished. Launches that may run at the same time need one workspace
/// each. A captured launch uses it each time its graph runs.
///
/// @par Thread safety
/// A value.
class Workspace {
public:
    /// The address of a caller's memory must be a multiple of this, in bytes. The address of a buffer is.
    static constexpr std::size_t alignment = 256;

    /// The library's own memory: a block for each stream, allocated at the first launch that needs it and kept.
    /// Captured launches use a block that belongs to the graph.
    Workspace() = default;

    /// The caller's memory. An empty span means no memory: a kernel that needs none is chosen.
    Workspace(DeviceSpan<std::byte> memory) noexcept : memory_(memory), limit_(memory.size()), is_callers_(true) {}

    /// The caller's memory: a whole buffer of bytes, which still owns it.
    template <class Buffer>
        requires requires(Buffer& buffer) {
            { buffer.span() } -> std::same_as<DeviceSpan<std::byte>>;
        }
    Workspace(Buffer& buffer) noexcept : Workspace(buffer.span())
    {}

    /// The library's own memory, at most `bytes`: a kernel that needs no more is chosen, even if it is slower. With 0,
    /// a launch never allocates.
    ///
    /// @code{.cpp}
    /// Gemm::launch(stream, a16, b16, d16, {}, Variant::automatic, Workspace::at_most(0));
    /// @endcode
    static Workspace at_most(std::size_t bytes) noexcept
    {
        Workspace workspace;
        workspace.limit_ = bytes;
        return workspace;
    }

    /// Returns true if the memory is the caller's.
    bool is_callers() const noexcept { return is_callers_; }
    /// Returns the caller's memory.
    DeviceSpan<std::byte> memory() const noexcept { return memory_; }
    /// Returns the most that a launch may need, in bytes.
    std::size_t limit() const noexcept { return limit_; }

private:
    DeviceSpan<std::byte> memory_;
    std::size_t limit_ = static_cast<std::size_t>(-1);
    bool is_callers_ = false;
};

}  // namespace tessera
