#pragma once

// Shared-memory swizzles (PTX ISA "Swizzling modes" of tensors, and the matrix descriptors of wgmma and tcgen05): which
// bits of an address are exchanged. They use bits of the *absolute* shared address. A tile that does not start at a
// multiple of its pattern is swizzled like a part of a tile that does.

#include <cstdint>

#include "machine/tensor_map.hpp"

namespace tessera::emulator {

/// Place of the byte with linear address `address`. Bits from 10 on, which include the rank in the cluster, never
/// change.
[[nodiscard]] constexpr std::uint32_t swizzle(TensorSwizzle mode, std::uint32_t address) noexcept
{
    switch (mode) {
        case TensorSwizzle::none: return address;
        case TensorSwizzle::span_32: return address ^ ((address >> 7U & 1U) << 4U);
        case TensorSwizzle::span_64: return address ^ ((address >> 7U & 3U) << 4U);
        case TensorSwizzle::span_128: return address ^ ((address >> 7U & 7U) << 4U);
        case TensorSwizzle::span_128_atom_32: return address ^ ((address >> 7U & 3U) << 5U);
        case TensorSwizzle::span_128_atom_32_flip_8:
            // In every second line of 128 bytes, the halves of each 16 bytes are exchanged, too.
            return address ^ ((address >> 7U & 3U) << 5U) ^ ((address >> 7U & 1U) << 3U);
        case TensorSwizzle::span_128_atom_64: return address ^ ((address >> 7U & 1U) << 6U);
    }
    return address;
}

/// Bytes that stay together: aligned runs of this size move as one.
[[nodiscard]] constexpr std::uint32_t swizzle_atom(TensorSwizzle mode) noexcept
{
    switch (mode) {
        case TensorSwizzle::none: return 1U << 30U;
        case TensorSwizzle::span_128_atom_32: return 32;
        case TensorSwizzle::span_128_atom_32_flip_8: return 8;
        case TensorSwizzle::span_128_atom_64: return 64;
        default: return 16;
    }
}

/// Bytes of a line within which atoms move; 0 for no swizzle.
[[nodiscard]] constexpr std::uint32_t swizzle_span(TensorSwizzle mode) noexcept
{
    switch (mode) {
        case TensorSwizzle::none: return 0;
        case TensorSwizzle::span_32: return 32;
        case TensorSwizzle::span_64: return 64;
        default: return 128;
    }
}

}  // namespace tessera::emulator
