#pragma once

/// A kernel that loads one box with TMA, for every element type and swizzle that the tests use.

#include <cstdint>

#include "kernels.hpp"
#include "tessera/tensor_map.hpp"

namespace tessera::test {

inline constexpr unsigned box_rows = 16;

/// As wide as the swizzle allows; 64 bytes without one.
template <class T, Swizzle Pattern>
using TestMap = TensorMap<
    T, Box<static_cast<unsigned>((Pattern == Swizzle::none ? 64U : swizzle_span_bytes(Pattern)) / sizeof(T)), box_rows>,
    Pattern>;

/// Through cuda::ptx, or prefetched and loaded with an L2 policy.
enum class LoadWay : std::uint8_t { plain, with_policy };

/// Loads the box whose first element is (row, column) and copies the bytes of shared memory to `out` in their order.
/// One CTA, `shared_bytes_for_box<Map>` bytes of dynamic shared memory.
template <class Map>
Kernel<Map, LoadWay, int, int, DeviceSpan<std::uint32_t>> load_box_kernel();

/// The box, room to align it to 1024 bytes, and the barrier.
template <class Map>
inline constexpr std::size_t shared_bytes_for_box = Map::box_bytes + 1024 + 16;

}  // namespace tessera::test
