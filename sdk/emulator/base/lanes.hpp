#pragma once

// A warp's lanes: masks, and rows that hold one register for all lanes.

#include <algorithm>
#include <bit>
#include <cstdint>

namespace tessera::emulator {

inline constexpr unsigned warp_size = 32;

/// Bit i: lane i is included.
using LaneMask = std::uint32_t;
inline constexpr LaneMask all_lanes = 0xFFFFFFFF;

/// The mask of one lane.
[[nodiscard]] constexpr LaneMask bit(unsigned lane) noexcept { return LaneMask{1} << lane; }

/// Calls `body(lane)` for each lane of `mask`, lowest first.
template <typename Body>
inline void for_each_lane(LaneMask mask, Body&& body)
{
    for (LaneMask rest = mask; rest != 0; rest &= rest - 1) {
        body(static_cast<unsigned>(std::countr_zero(rest)));
    }
}

/// The least and the greatest of these lanes' values.
struct Bounds {
    std::uint32_t low, high;
};
[[nodiscard]] inline Bounds bounds_of(const std::uint32_t* row, LaneMask mask) noexcept
{
    const std::uint32_t first = row[std::countr_zero(mask)];
    Bounds bounds{first, first};
    if (mask == all_lanes) {
        for (unsigned lane = 0; lane < warp_size; ++lane) {  // vectorized
            bounds.low = std::min(bounds.low, row[lane]);
            bounds.high = std::max(bounds.high, row[lane]);
        }
        return bounds;
    }
    for_each_lane(mask, [&](unsigned lane) {
        bounds.low = std::min(bounds.low, row[lane]);
        bounds.high = std::max(bounds.high, row[lane]);
    });
    return bounds;
}

struct Dim3 {
    std::uint32_t x = 1, y = 1, z = 1;
    [[nodiscard]] constexpr std::uint64_t count() const noexcept { return std::uint64_t{x} * y * z; }
    friend constexpr bool operator==(const Dim3&, const Dim3&) = default;
};

/// The position with linear index `index` (x fastest) in `extent`.
[[nodiscard]] constexpr Dim3 position(std::uint64_t index, Dim3 extent) noexcept
{
    return {static_cast<std::uint32_t>(index % extent.x), static_cast<std::uint32_t>(index / extent.x % extent.y),
            static_cast<std::uint32_t>(index / extent.x / extent.y)};
}

}  // namespace tessera::emulator
