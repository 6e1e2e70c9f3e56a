#pragma once

/// Tensor maps of the library's own kernels.

#include "base/call_status.hpp"
#include "tessera/device.hpp"
#include "tessera/tensor_map.hpp"

namespace tessera::detail {

/// Encodes a tensor map without checking the request, which the caller has made sure is valid, and applies
/// `mend_small_tensor_map`. Sets `bits` to zero on failure.
CallStatus encode_for_launch(const DeviceProperties& device, const TensorMapRequest& request, TensorMapBits& bits);

/// Asks the driver for its encoder at the next tensor map again. Exposed for tests.
void forget_tensor_map_encoder() noexcept;

}  // namespace tessera::detail
