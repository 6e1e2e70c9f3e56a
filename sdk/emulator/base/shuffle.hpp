#pragma once

// Which lane a lane reads in shfl (PTX ISA 9.7.9.6 "shfl.sync").

#include <cstdint>

namespace tessera::emulator {

enum class Shuffle : std::uint8_t { up, down, bfly, idx };

struct ShuffleSource {
    unsigned lane;
    bool inside;  ///< of the segment; if not, the lane reads its own value
};

/// The lane that `lane` reads; operands b and c as the instruction defines them.
[[nodiscard]] constexpr ShuffleSource shuffle_source(Shuffle mode, unsigned lane, std::uint32_t b, std::uint32_t c)
{
    const unsigned offset = b & 31;
    const unsigned clamp = c & 31;
    const unsigned segment = c >> 8 & 31;
    const unsigned lowest = lane & segment;
    const unsigned limit = lowest | (clamp & ~segment);
    int source = 0;
    bool inside = false;
    if (mode == Shuffle::up) {
        source = static_cast<int>(lane) - static_cast<int>(offset);
        inside = source >= static_cast<int>(limit);
    } else {
        source = static_cast<int>(mode == Shuffle::down   ? lane + offset
                                  : mode == Shuffle::bfly ? lane ^ offset
                                                          : lowest | (offset & ~segment));
        inside = source <= static_cast<int>(limit);
    }
    return {inside ? static_cast<unsigned>(source) & 31 : lane, inside};
}

}  // namespace tessera::emulator
