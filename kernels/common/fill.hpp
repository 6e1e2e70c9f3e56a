#pragma once

/// Fills device memory with a repeated value; the kernel behind DeviceBuffer::fill.

#include <cuda_runtime_api.h>

#include <cstddef>

namespace tessera::kernels {

/// The longest value that can be repeated, in bytes.
inline constexpr std::size_t max_fill_value_bytes = 256;

/// Enqueues the fill of `count` values of `value_bytes` bytes each on `stream` of the current device.
cudaError_t fill(void* data, std::size_t count, const void* value, std::size_t value_bytes, cudaStream_t stream);

}  // namespace tessera::kernels
