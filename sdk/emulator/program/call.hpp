#pragma once

// The arguments of a call instruction, shared by control flow and the warp's frames.

#include <cstdint>
#include <vector>

#include "program/operation.hpp"

namespace tessera::emulator {

/// A .param variable of the caller, passed as an argument or receiving a result.
struct CallArgument {
    std::uint32_t offset = 0, size = 0;  ///< in the caller's .param area
};

struct CallPayload : Payload {
    std::uint32_t callee = 0xFFFFFFFF;  ///< index of the function; none for indirect calls
    Ref pointer = no_row;               ///< of indirect calls: 64-bit function handles
    std::vector<CallArgument> results, arguments;
};

}  // namespace tessera::emulator
