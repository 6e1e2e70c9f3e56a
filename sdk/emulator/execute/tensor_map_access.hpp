#pragma once

// Tensor maps in memory, as instructions find them.

#include "machine/cluster.hpp"
#include "machine/tensor_map.hpp"
#include "machine/warp.hpp"

namespace tessera::emulator {

/// The tensor map at a generic address (global memory, constant memory or the kernel's parameters). Faults if there is
/// none. `what` is for messages.
[[nodiscard]] TensorMap tensor_map_at(Warp& warp, const Operation& operation, const AddressRef& address, unsigned lane,
                                      const char* what);

}  // namespace tessera::emulator
