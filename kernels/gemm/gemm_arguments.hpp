#pragma once

/// The kernel parameters that all GEMM kernels share: one plain struct, passed by value.
///
/// All sizes and strides are 64-bit and count elements, since a byte offset may exceed 2^31. The host has checked
/// everything (bounds, aliasing, devices) and normalized the problem, so a kernel checks only the edges of its tiles.

#include <cstdint>

#include "tessera/detail/host_device.hpp"
#include "tessera/device/tile_raster.hpp"
#include "tessera/element.hpp"
#include "tessera/epilogue_kind.hpp"

namespace tessera::kernels {

/// A strided batch of matrices that a kernel reads. Element (row, column) of matrix `batch` is at
/// `data + batch * batch_stride + row * row_stride + column * column_stride`. At least one of the two inner strides
/// is 1.
struct Operand {
    const void* data;
    std::int64_t row_stride;
    std::int64_t column_stride;
    std::int64_t batch_stride;
};

/// The same for matrices that a kernel writes, with their type.
struct Destination {
    void* data;
    std::int64_t row_stride;
    std::int64_t column_stride;
    std::int64_t batch_stride;
    ElementType type;
};

using ActivationKind = Activation;

/// D(m, n) = act(alpha * scale_a * scale_b * sum_k A(m, k) * B(k, n) * scales + beta * C(m, n) + bias), accumulated in
/// fp32. `scales` is row_scales(m) * column_scales(n), rounded, so that it is the same if the sides are exchanged.
///
/// `c.data` is read only if `beta` is not zero, so a NaN in an unused C does not spread. C may be the same matrix as D.
/// `pre_activation`, if there is one, receives the argument of act. A D of 8 bits is scaled by `scale_d`, and `amax_d` is
/// raised to its largest magnitude before that. `bias` has m (per_row) or n (per_column) contiguous elements, shared by
/// all batches.
struct GemmArguments {
    Operand a;  // (m, k)
    Operand b;  // (k, n)
    Operand c;  // (m, n)
    void* d;    // (m, n)
    std::int64_t d_row_stride;
    std::int64_t d_column_stride;
    std::int64_t d_batch_stride;
    Destination pre_activation;  // (m, n); its data are null if there is none
    const void* bias;
    const float* scale_a;  // one float, or null for 1; A's and B's own even if the launch exchanges the operands
    const float* scale_b;
    const float* row_scales;     // m floats, shared by all batches, or null for ones
    const float* column_scales;  // n floats
    const float* scale_d;        // one float, or null for 1; for a D of 8 bits
    float* amax_d;               // one float, or null
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    float alpha;
    float beta;
    TileRaster raster;   // of the kernel's tiles of D; of cluster tiles where CTAs form clusters
    ElementType a_type;  // for kernels that take several input types
    ElementType b_type;
    ElementType c_type;
    ElementType d_type;
    ElementType bias_type;
    BiasAxis bias_axis;
    ActivationKind activation;
    Gating gating;  // pairs of the n columns become n / 2 columns of D; `beta` is 0 then

    TESSERA_DETAIL_HOST_DEVICE std::int64_t d_columns() const { return gating == Gating::none ? n : n / 2; }
    /// Column of B that belongs to column `pair` of D: its gate, or its `up`.
    TESSERA_DETAIL_HOST_DEVICE std::int64_t column_of_pair(std::int64_t pair, bool up) const
    {
        return gating == Gating::interleaved ? 2 * pair + (up ? 1 : 0) : pair + (up ? n / 2 : 0);
    }
    TESSERA_DETAIL_HOST_DEVICE bool has_scale_vectors() const
    {
        return row_scales != nullptr || column_scales != nullptr;
    }
};

}  // namespace tessera::kernels
