#pragma once

// The bytes of a word of 4 bytes as bits.

#include <algorithm>
#include <cstdint>

namespace tessera::emulator {

// In the state of a word, a bit for each byte: initialized, written by the last writer, read since then.
inline constexpr std::uint16_t all_bytes = 0xF;
inline constexpr unsigned written_shift = 4, read_shift = 8;
inline constexpr std::uint16_t all_written = all_bytes << written_shift, all_read = all_bytes << read_shift;
/// An mbarrier is here.
inline constexpr std::uint16_t is_barrier = 1U << 12U;

/// The bytes of word `word` that are in [begin, end).
[[nodiscard]] constexpr std::uint16_t bytes_of_word(std::uint32_t word, std::uint32_t begin, std::uint32_t end) noexcept
{
    const std::uint32_t first = std::max(word * 4, begin) - word * 4;
    const std::uint32_t last = std::min(word * 4 + 4, end) - word * 4;
    return static_cast<std::uint16_t>((all_bytes << first) & (all_bytes >> (4 - last)));
}

}  // namespace tessera::emulator
