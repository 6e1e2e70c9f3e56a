#pragma once

/// Kernels that multiply one tile with the mma.sync forms of compute capability 12.x. One warp loads the tile to shared memory, its
/// fragments from there, and scale factors from global memory.

#include <cstdint>

#include "kernels.hpp"
#include "mma_sync_tile.hpp"
#include "tessera/device/mma_spec.hpp"
#include "tessera/element.hpp"

namespace tessera::test {

inline constexpr unsigned narrow_steps = 4;  // instructions for a row

/// Adds a * b^T, for rows of bytes a (tile_m, tile_row_bytes) and b (tile_n, tile_row_bytes), to d (tile_m,
/// tile_n), row-major.
template <class D>
using NarrowProduct = Kernel<DeviceSpan<const std::uint8_t>, DeviceSpan<const std::uint8_t>, DeviceSpan<D>>;
/// Adds (a * a_scales) * (b * b_scales)^T. Each row has `narrow_steps` times as many factors as one instruction takes, in the order
/// of K.
using NarrowScaledProduct = Kernel<DeviceSpan<const std::uint8_t>, DeviceSpan<const std::uint8_t>,
                                   DeviceSpan<const std::uint8_t>, DeviceSpan<const std::uint8_t>, DeviceSpan<float>>;

/// The kernels of one pair of element types.
template <class D>
NarrowProduct<D> narrow_product_kernel(OperandType a, OperandType b);
NarrowScaledProduct narrow_scaled_product_kernel(OperandType a, OperandType b);
/// Of f4e2m1x2.
/// @param type    with the number of factors that it has: ue8m0 two, ue4m3 four
/// @param place  the lane of each four with the factors of B: 0 to 3. Those of A are in the second pair if it is odd
NarrowScaledProduct packed_scaled_product_kernel(ScaleType type, unsigned place);

}  // namespace tessera::test
