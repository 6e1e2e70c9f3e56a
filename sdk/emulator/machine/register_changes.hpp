#pragma once

// What the warps of a CTA did with their shares of its registers (setmaxnreg), compared when the CTA has ended.

#include <cstdint>

namespace tessera::emulator {

class Cta;
struct Operation;

/// One setmaxnreg of one warp.
struct RegisterChange {
    std::uint32_t warp = 0;
    std::uint32_t count = 0;  ///< registers per thread from then on
    bool increase = false;
    const Operation* operation = nullptr;
    std::uint64_t executed = 0;  ///< instructions of the warp until then
};

/// Reports setmaxnreg that only a part of a warpgroup executed, or with different numbers (PTX ISA: "the same setmaxnreg
/// instruction must be executed by all warps in a warpgroup", else the behavior is undefined), and warps that together
/// hold more registers than the CTA has: an .inc that was granted only because other warps had ended.
void check_register_changes(Cta& cta);

}  // namespace tessera::emulator
