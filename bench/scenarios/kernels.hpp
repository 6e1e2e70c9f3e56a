#pragma once

/// The kernels between products that a first version of a network has: one for each step, as in a framework without fusion. All are
/// limited by memory. Matrices are row-major without gaps.

#include <cstdint>

#include "tessera/device_span.hpp"
#include "tessera/element.hpp"
#include "tessera/stream.hpp"

namespace tessera::scenarios {

// ---- bf16, with fp32 arithmetic. Rows have multiples of 8 elements.

/// d(i, j) += bias(j)
void add_bias(StreamRef stream, DeviceSpan<bf16> d, DeviceSpan<const float> bias);
/// d = GELU(d), by the error function
void apply_gelu(StreamRef stream, DeviceSpan<bf16> d);
/// d += residual
void add_residual(StreamRef stream, DeviceSpan<bf16> d, DeviceSpan<const bf16> residual);
/// Each row becomes its softmax.
void softmax_rows(StreamRef stream, DeviceSpan<bf16> d, std::int64_t columns);
/// Each row of y is that of x, less its mean, divided by its standard deviation.
void normalize_rows(StreamRef stream, DeviceSpan<const bf16> x, DeviceSpan<bf16> y, std::int64_t columns);

// ---- f32

/// d(i, j) += bias(j)
void add_bias(StreamRef stream, DeviceSpan<float> d, DeviceSpan<const float> bias);
/// d = max(d, 0)
void apply_relu(StreamRef stream, DeviceSpan<float> d);
/// gradient = 0 where the layer's result is 0
void relu_gradient(StreamRef stream, DeviceSpan<float> gradient, DeviceSpan<const float> result);
/// to += factor * from
void add_scaled(StreamRef stream, DeviceSpan<float> to, float factor, DeviceSpan<const float> from);
/// Of each sample, with one row of logits: its cross entropy, and the gradient of the mean over `samples` samples with respect to its
/// logits.
void cross_entropy(StreamRef stream, DeviceSpan<const float> logits, DeviceSpan<const std::int32_t> labels,
                   std::int64_t samples, DeviceSpan<float> gradient, DeviceSpan<float> losses);

}  // namespace tessera::scenarios
