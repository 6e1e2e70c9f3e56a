#pragma once

/// What every GEMM kernel of this library is told: one plain struct, passed by value as the kernel's only parameter.
///
/// All sizes and strides are in elements and 64-bit: a byte offset may pass 2^31. The host has checked everything
/// (bounds, aliasing, devices) and brought the problem into this form, so a kernel checks nothing but its tile edges.

#include <cstdint>

#include "tessera/element.hpp"
#include "tessera/epilogue_kind.hpp"

namespace tessera::kernels {

/// A strided batch of matrices that a kernel reads. Element (row, column) of matrix `batch` is at
/// `data + batch * batch_stride + row * row_stride + column * column_stride`; at least one of the two inner strides
/// is 1.
struct Operand {
    const void* data;
    std::int64_t row_stride;
    std::int64_t column_stride;
    std::int64_t batch_stride;
};

using ActivationKind = Activation;

/// D(m, n) = act(alpha * scale_a * scale_b * sum_k A(m, k) * B(k, n) + beta * C(m, n) + bias), accumulated in fp32.
///
/// `c.data` is read only if `beta` is not zero (so NaN there does not spread otherwise) and has D's element type; it
/// may be the very same matrix as D. `bias` has m (per_row) or n (per_column) contiguous elements, shared by all
/// batches.
struct GemmArguments {
    Operand a;  // (m, k)
    Operand b;  // (k, n)
    Operand c;  // (m, n)
    void* d;    // (m, n)
    std::int64_t d_row_stride;
    std::int64_t d_column_stride;
    std::int64_t d_batch_stride;
    const void* bias;
    const float* scale_a;  // one float or null; A's and B's as the caller has them, also where the two are exchanged
    const float* scale_b;
    std::int64_t m;
    std::int64_t n;
    std::int64_t k;
    float alpha;
    float beta;
    std::uint32_t tiles_m;  // the grid is one-dimensional: tiles_m * tiles_n * batches CTAs
    std::uint32_t tiles_n;
    ElementType a_type;  // for kernels that take several
    ElementType b_type;
    ElementType d_type;
    ElementType bias_type;
    BiasAxis bias_axis;
    ActivationKind activation;
};

}  // namespace tessera::kernels
