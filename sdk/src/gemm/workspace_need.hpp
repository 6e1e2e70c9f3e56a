#pragma once

/// The device memory that a launch needs besides its operands.

#include <cstddef>
#include <cstdint>

namespace tessera::detail {

struct WorkspaceNeed {
    std::size_t partial_bytes = 0;
    std::size_t counters = 0;
    std::size_t copy_bytes = 0;  // of operands that are repacked
};

/// The memory that meets a WorkspaceNeed.
struct WorkspaceMemory {
    float* partials = nullptr;
    std::uint32_t* arrivals = nullptr;  // all zero before and after a launch
    std::byte* copies = nullptr;        // 128-byte aligned
};

inline bool same_memory(const WorkspaceMemory& one, const WorkspaceMemory& other) noexcept
{
    return one.partials == other.partials && one.arrivals == other.arrivals && one.copies == other.copies;
}

}  // namespace tessera::detail
