#pragma once

/// Fills device memory with a repeated value, for DeviceBuffer::fill. Uses cudaMemsetAsync if all bytes of the value
/// are equal, and a small kernel otherwise.

#include <cuda_runtime_api.h>

#include <cstddef>

namespace tessera::kernels {

/// The longest value that can be repeated, in bytes.
inline constexpr std::size_t max_fill_value_bytes = 256;

/// Enqueues the fill of `count` values of `value_bytes` bytes each on `stream`, a stream of the current device. `value`
/// is read before the function returns.
cudaError_t fill(void* data, std::size_t count, const void* value, std::size_t value_bytes, cudaStream_t stream);

}  // namespace tessera::kernels
