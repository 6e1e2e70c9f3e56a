#pragma once

/// @file
/// @ingroup host_tensor_maps
/// @brief Swizzles: how TMA and the tensor cores permute a tile in shared memory, so that both its rows and its columns
/// can be read without bank conflicts.
///
/// Usable on host and device. Source: PTX ISA, "Swizzling modes".

#include <cstdint>

#include "tessera/detail/host_device.hpp"

namespace tessera {

/// A swizzle pattern: inside a span of 32, 64 or 128 bytes, chunks of 16 bytes are exchanged by an XOR with higher
/// address bits. The numbers are those of the driver's CUtensorMapSwizzle.
enum class Swizzle : std::uint8_t {
    none = 0,           ///< no exchange
    b32 = 1,            ///< spans of 32 bytes
    b64 = 2,            ///< spans of 64 bytes
    b128 = 3,           ///< spans of 128 bytes
    b128_atom_32b = 4,  ///< spans of 128 bytes, chunks of 32 bytes: for 4-byte elements that are not contiguous in k
};

/// Returns the bytes of a pattern's span; 0 for `none`.
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t swizzle_span_bytes(Swizzle swizzle) noexcept
{
    switch (swizzle) {
        case Swizzle::none: return 0;
        case Swizzle::b32: return 32;
        case Swizzle::b64: return 64;
        case Swizzle::b128:
        case Swizzle::b128_atom_32b: break;
    }
    return 128;
}

/// Returns the bytes that a tile's shared-memory address must be a multiple of, so that the pattern starts at its
/// origin. This is the length after which the pattern repeats, and at least TMA's own 128.
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t swizzle_alignment(Swizzle swizzle) noexcept
{
    return swizzle == Swizzle::none ? 128 : 8 * swizzle_span_bytes(swizzle);
}

/// Returns where the byte of linear address `address` is stored. The XOR acts on address bits, so `address` must be
/// counted from a multiple of `swizzle_alignment`.
/// @param swizzle  the pattern
/// @param address  in bytes
TESSERA_DETAIL_HOST_DEVICE constexpr std::uint32_t swizzled(Swizzle swizzle, std::uint32_t address) noexcept
{
    const std::uint32_t row = address >> 7;  // in rows of 128 bytes
    switch (swizzle) {
        case Swizzle::none: break;
        case Swizzle::b32: return address ^ (row & 1U) << 4;
        case Swizzle::b64: return address ^ (row & 3U) << 4;
        case Swizzle::b128: return address ^ (row & 7U) << 4;
        case Swizzle::b128_atom_32b: return address ^ (row & 3U) << 5;
    }
    return address;
}

}  // namespace tessera
