#pragma once

/// Tensor maps of the library's own kernels.

#include "call_status.hpp"
#include "tessera/tensor_map.hpp"

namespace tessera::detail {

/// Encodes without checking anything first: variant_chooser.hpp has seen to it that the rules are kept. All zeros if
/// it fails.
CallStatus encode_for_launch(const TensorMapRequest& request, TensorMapBits& bits);

}  // namespace tessera::detail
