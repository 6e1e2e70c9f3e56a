#pragma once

// How the addresses of a warp's lanes lie.

#include <cstdint>

namespace tessera::emulator {

enum class AccessShape : std::uint8_t {
    uniform,    ///< the active lanes are at one place
    row,        ///< all 32 lanes, one after the other without gaps
    strided,    ///< all 32 lanes at equal distances
    scattered,  ///< anything else
};

}  // namespace tessera::emulator
