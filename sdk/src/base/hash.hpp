#pragma once

/// A hash of texts that files keep: the same on every machine.

#include <cstdint>
#include <string_view>

namespace tessera::detail {

inline constexpr std::uint64_t hash_start = 0xCBF29CE484222325U;

/// FNV-1a, 64 bits: detects damage, not malice. The hash of a text goes on from that of the text before it.
constexpr std::uint64_t hash(std::string_view text, std::uint64_t start = hash_start) noexcept
{
    for (const char character : text) {
        start = (start ^ static_cast<unsigned char>(character)) * 0x100000001B3U;
    }
    return start;
}

}  // namespace tessera::detail
