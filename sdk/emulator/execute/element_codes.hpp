#pragma once

// Floating-point elements as codes, one per cell: what tcgen05.mma and the kinds of mma.sync share. Their packings, A's
// structured sparsity, and the sums themselves.

#include <cstddef>
#include <cstdint>

#include "machine/instruction_descriptor.hpp"
#include "machine/options.hpp"
#include "numerics/tensor_sum.hpp"

namespace tessera::emulator {

/// kind::mxf4 and kind::mxf4nvf4, which pack two elements in a byte.
[[nodiscard]] constexpr bool is_four_bit(MmaKind kind) noexcept
{
    return kind == MmaKind::mxf4 || kind == MmaKind::mxf4nvf4;
}
/// Bytes of an element's cell.
[[nodiscard]] constexpr unsigned cell_bytes(MmaElement element) noexcept
{
    return bits_of(element) < 8 ? 1 : bits_of(element) / 8;
}

/// Unpacks two 4-bit codes per byte, low code first, to one per byte. `codes` has 2 * `bytes`.
void unpack_nibbles(const std::byte* packed, std::size_t bytes, std::byte* codes);
/// Takes the codes out of 8-bit containers, in place: those of 6 bits are in bits 0 to 5, E2M1 in bits 2 to 5 (PTX ISA
/// "mma" and "Packing format used for matrix A by .kind::mxf8f6f4 in Tensor Memory"). What is around them does not matter.
void unpack_containers(std::byte* codes, std::size_t count, MmaElement element);

/// A chunk of K of a sparse A, and how many of its elements are stored.
struct Sparsity {
    unsigned chunk, stored, run;  ///< run: elements placed by one index
};
[[nodiscard]] Sparsity sparsity_of(MmaKind kind) noexcept;
/// Moves one chunk's stored elements to the places that its four bits of metadata give; `dense` has zeros. Returns false
/// if the metadata is not defined. That of zeros does not matter: CUTLASS's compressor writes 0b0000 there.
bool place_chunk(const Sparsity& sparsity, unsigned metadata, const std::byte* stored, unsigned cell, std::byte* dense);

/// D (m, n) += A (m, k) * B (n, k)^T.
struct CodedProduct {
    MmaKind kind = MmaKind::f16;
    numerics::CodeView a, b;  ///< of 4-bit kinds without gaps
    std::size_t m = 0, n = 0, k = 0;
    std::size_t instruction_k = 0;  ///< K of the instruction
    numerics::Accumulator accumulator = numerics::Accumulator::f32;
    numerics::BlockScales scales{.per_row = 0};  ///< of block-scaled kinds
    numerics::Accumulation how{};
};
/// `d` holds floats, also of an f16 accumulator.
void add_product(const CodedProduct& product, Numerics numerics, float* d, std::size_t ldd);

}  // namespace tessera::emulator
