#pragma once

/// Kernels for features of the device layer that the library's own kernels do not use: block-scaled products, A in tensor
/// memory, and a pipeline of typed tensor maps and tiles. One tile: a CTA, a pair, or a cluster of them.

#include <cstdint>

#include "kernels.hpp"
#include "tessera/device/cta_group.hpp"
#include "tessera/device/mma_spec.hpp"
#include "tessera/tessera.hpp"

namespace tessera::test {

/// 16 bytes of a row.
struct alignas(16) RowChunk {
    std::uint8_t bytes[16];
};

inline constexpr unsigned row_chunks = 8;  // 128 bytes of K
inline constexpr unsigned product_threads = 128;
inline constexpr unsigned product_steps = 4;                    // instructions for 128 bytes of K
inline constexpr std::size_t product_shared_bytes = 40 * 1024;  // at most

/// M and N of the tile.
TESSERA_DETAIL_HOST_DEVICE constexpr unsigned product_size(CtaGroup group)
{
    return group == CtaGroup::pair ? 256 : 128;
}

/// d (M, N), row-major = (a * a_scales) * (b * b_scales)^T. Rows of a (M) and b (N) are 128 bytes; their factors are
/// `4 * vector` bytes each, in the order of K. One cluster of one or two CTAs.
using ScaledProduct = Kernel<DeviceSpan<const RowChunk>, DeviceSpan<const RowChunk>, DeviceSpan<const std::uint8_t>,
                             DeviceSpan<const std::uint8_t>, DeviceSpan<float>>;
ScaledProduct scaled_product_kernel(MmaKind kind, ScaleVector vector, CtaGroup group);

/// d (M, N), row-major = a * b^T of f16, with a in tensor memory.
using TensorMemoryProduct = Kernel<DeviceSpan<const RowChunk>, DeviceSpan<const RowChunk>, DeviceSpan<float>>;
TensorMemoryProduct tensor_memory_product_kernel(CtaGroup group);

inline constexpr unsigned pipelined_n = 128;
inline constexpr unsigned pipelined_k = 5 * 64;  // more stages than the ring has slots

/// Launches d (128 * ctas, pipelined_n), row-major = a * b^T, with K = pipelined_k, in one cluster. Its CTAs or pairs have 128 or
/// 256 rows of a each; if there are two of them, each loads half of b for both.
/// @param ctas  1 or 2, for pairs 2 or 4
void launch_pipelined_product(StreamRef stream, CtaGroup group, unsigned ctas, const DeviceBuffer<f16>& a,
                              const DeviceBuffer<f16>& b, DeviceBuffer<float>& d);

}  // namespace tessera::test
