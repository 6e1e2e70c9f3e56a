#pragma once

/// Kernels that multiply one tile with a sparse A by mma.sp. One warp loads the tile to shared memory, its fragments from there, and
/// metadata and scale factors from global memory.

#include <cstdint>
#include <optional>
#include <vector>

#include "kernels.hpp"
#include "mma_sync_tile.hpp"
#include "tessera/detail/host_device.hpp"
#include "tessera/device/mma_spec.hpp"
#include "tessera/element.hpp"

namespace tessera::test {

inline constexpr unsigned stored_row_bytes = tile_row_bytes / 2;

/// The bytes of A (tile_m, stored_row_bytes) and the words of a CompressedMatrix.
struct SparseBytes {
    std::vector<std::uint8_t> stored;
    std::vector<std::uint32_t> metadata;
};
/// Compresses A (tile_m, tile_row_bytes) with compress_sparse. `packed`: e2m1 is f4e2m1x2.
std::optional<SparseBytes> compress_bytes(OperandType type, bool packed, const std::vector<std::uint8_t>& bytes);

/// Adds a * b^T to d (tile_m, tile_n), row-major, for the stored bytes and metadata of a, and rows of bytes b (tile_n,
/// tile_row_bytes).
template <class D>
using SparseProduct = Kernel<DeviceSpan<const std::uint8_t>, DeviceSpan<const std::uint32_t>,
                             DeviceSpan<const std::uint8_t>, DeviceSpan<D>>;
/// Adds (a * a_scales) * (b * b_scales)^T. Each row has two instructions' factors, in the order of K.
using SparseScaledProduct =
    Kernel<DeviceSpan<const std::uint8_t>, DeviceSpan<const std::uint32_t>, DeviceSpan<const std::uint8_t>,
           DeviceSpan<const std::uint8_t>, DeviceSpan<const std::uint8_t>, DeviceSpan<float>>;

/// f16, bf16 and tf32: `wide` is the form with the larger K.
template <class D>
SparseProduct<D> sparse_product_kernel(OperandType type, bool wide);
/// Floats in bytes of their own.
template <class D>
SparseProduct<D> sparse_bytes_kernel(OperandType a, OperandType b);
SparseScaledProduct sparse_scaled_bytes_kernel(OperandType a, OperandType b);
/// Of f4e2m1x2.
/// @param type   with the number of factors that it has: ue8m0 two, ue4m3 four
/// @param place  the lane of each four with the factors of B: 0 to 3. Those of A are in the second pair if it is odd
SparseScaledProduct sparse_pairs_kernel(ScaleType type, unsigned place);

/// Writes the 32 words that SparseMetadata::of makes on the device: stored object i of a row was where `pattern_place` says, of tf32
/// that modulo 2.
Kernel<DeviceSpan<std::uint32_t>> metadata_kernel(OperandType type);
TESSERA_DETAIL_HOST_DEVICE constexpr unsigned pattern_place(unsigned row, unsigned i)
{
    const unsigned first = (row + i / 2) % 3;
    return i % 2 == 0 ? first : first + 1 + row * (i / 2) % (3 - first);
}

}  // namespace tessera::test
