#pragma once

// Shared-memory matrix descriptors: the 64 bits that name an operand tile of wgmma and tcgen05 instructions (PTX ISA
// "Matrix descriptor" of wgmma and "Shared memory descriptor" of tcgen05), and the place of each element of the tile.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "machine/swizzle.hpp"

namespace tessera::emulator {

/// Which dimension of an operand is contiguous. A is M x K, B is N x K here: "MN" is M for A and N for B.
enum class Major : std::uint8_t { k, mn };

/// Bytes of a row of the swizzle pattern in an operand tile; one 16-byte chunk without swizzle.
[[nodiscard]] constexpr std::uint32_t row_span(TensorSwizzle mode) noexcept
{
    return mode == TensorSwizzle::none ? 16 : swizzle_span(mode);
}

/// "the 64-byte swizzle", for messages.
[[nodiscard]] std::string_view swizzle_name(TensorSwizzle mode) noexcept;

/// Bytes after which a swizzle's pattern repeats. Operand tiles start at multiples of it. 16 without swizzle.
[[nodiscard]] constexpr std::uint32_t swizzle_repeat(TensorSwizzle mode) noexcept
{
    switch (mode) {
        case TensorSwizzle::none: return 16;
        case TensorSwizzle::span_32: return 256;
        case TensorSwizzle::span_64: return 512;
        case TensorSwizzle::span_128: return 1024;
        case TensorSwizzle::span_128_atom_64: return 256;
        default: return 512;
    }
}

/// A descriptor's fields, in bytes.
struct MatrixDescriptor {
    std::uint32_t start = 0;    ///< address in the CTA's shared window, below 256 KiB
    std::uint32_t leading = 0;  ///< leading-dimension byte offset; an address if `leading_absolute`
    std::uint32_t stride = 0;   ///< stride-dimension byte offset
    std::uint32_t base_offset =
        0;  ///< 0 to 7: rows of 128 bytes from a repeat of the pattern to where this tile's pattern starts
    bool leading_absolute = false;  ///< tcgen05 of sm_103a only
    TensorSwizzle swizzle = TensorSwizzle::none;
    friend bool operator==(const MatrixDescriptor&, const MatrixDescriptor&) = default;
};

/// A descriptor, or a sentence that names the wrong field (the descriptor then has what could be read).
struct DecodedMatrixDescriptor {
    MatrixDescriptor descriptor;
    std::string problem;
};

/// tcgen05 form: constant 0b001 in bits 46-48, swizzle in bits 61-63.
[[nodiscard]] DecodedMatrixDescriptor decode_tcgen05_descriptor(std::uint64_t bits);
/// wgmma form: no constant, swizzle in bits 62-63.
[[nodiscard]] DecodedMatrixDescriptor decode_wgmma_descriptor(std::uint64_t bits);

/// The tile that a descriptor names. It consists of lines along the contiguous dimension. K-major: line i is row i of
/// the operand, with bytes along K. MN-major: line i is k = i, with bytes along M or N. Each 16-byte chunk of a line is
/// contiguous in memory, whatever the swizzle.
struct OperandTile {
    MatrixDescriptor descriptor;
    Major major = Major::k;
    std::uint32_t lines = 0;  ///< rows (K-major) or K elements (MN-major)
    std::uint32_t line_bytes =
        0;  ///< K or MN extent in bytes; a multiple of 16, but for 8-row matrices of 8-bit types (8)

    static constexpr std::uint32_t chunk_bytes = 16;
    [[nodiscard]] std::uint32_t chunks_per_line() const noexcept
    {
        return (line_bytes + chunk_bytes - 1) / chunk_bytes;
    }
    /// Address of byte 16 * `chunk` of line `line`, in the CTA's shared window.
    [[nodiscard]] std::uint32_t chunk_address(std::uint32_t line, std::uint32_t chunk) const noexcept;
    /// Address of byte `byte` of line `line`.
    [[nodiscard]] std::uint32_t address(std::uint32_t line, std::uint32_t byte) const noexcept
    {
        return chunk_address(line, byte / chunk_bytes) + byte % chunk_bytes;
    }

    struct Range {
        std::uint32_t begin = 0, end = 0;  ///< addresses, end excluded
    };
    /// Exactly the bytes that the tile covers, as sorted ranges; adjacent ranges are merged.
    [[nodiscard]] std::vector<Range> ranges() const;
    /// A cheap cover of the tile by few ranges: like ranges(), but with whole rows of the swizzle's width in a swizzled
    /// K-major tile.
    [[nodiscard]] std::vector<Range> cover() const;
    /// Calls body(address, bytes) for pieces that make up exactly the tile. Neighbouring chunks of one line are one
    /// piece.
    template <typename Body>
    void for_each_piece(Body&& body) const;

    /// What is wrong with the tile as a whole: a majorness and swizzle that cannot be combined, lines wider than the
    /// swizzle, a start within a row that leaves no room for a line. Empty if nothing is. `element_bits` is the size in
    /// memory (8 for padded 4- and 6-bit elements). A tile may start at any row of the pattern: with a base offset of 0
    /// the pattern begins at multiples of swizzle_repeat(), wherever the tile does, as TMA writes it.
    [[nodiscard]] std::string problem(unsigned element_bits) const;
    friend bool operator==(const OperandTile&, const OperandTile&) = default;
};

inline std::uint32_t OperandTile::chunk_address(std::uint32_t line, std::uint32_t chunk) const noexcept
{
    const MatrixDescriptor& d = descriptor;
    const std::uint32_t span = row_span(d.swizzle);
    std::uint32_t linear = 0;
    if (d.swizzle == TensorSwizzle::none) {
        // The strides swap roles between the two majors.
        linear = d.start + (line / 8) * (major == Major::k ? d.stride : d.leading) + (line % 8) * chunk_bytes +
                 chunk * (major == Major::k ? d.leading : d.stride);
    } else {
        const std::uint32_t group = d.swizzle == TensorSwizzle::span_128_atom_32 ? 4 : 8;
        const std::uint32_t byte = chunk * chunk_bytes;
        linear = d.start + (line / group) * d.stride + (line % group) * span +
                 (major == Major::k ? byte : (byte / span) * d.leading + byte % span);
    }
    // A base offset moves the pattern by that many rows of 128 bytes.
    const std::uint32_t shift = d.base_offset << 7;
    return (swizzle(d.swizzle, linear - shift) + shift) & 0x3FFFF;
}

template <typename Body>
void OperandTile::for_each_piece(Body&& body) const
{
    const std::uint32_t chunks = chunks_per_line();
    for (std::uint32_t line = 0; line < lines; ++line) {
        std::uint32_t begin = chunk_address(line, 0), end = begin + chunk_bytes;
        for (std::uint32_t chunk = 1; chunk < chunks; ++chunk) {
            const std::uint32_t address = chunk_address(line, chunk);
            if (address == end) {
                end += chunk_bytes;
            } else if (address + chunk_bytes == begin) {
                begin = address;
            } else {
                body(begin, end - begin);
                begin = address;
                end = address + chunk_bytes;
            }
        }
        body(begin, end - begin);
    }
}

}  // namespace tessera::emulator
