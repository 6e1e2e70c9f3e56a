#pragma once

// The computation of one tcgen05.mma: operands from shared and tensor memory, and the places of the rows of D.

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "machine/cta.hpp"
#include "machine/instruction_descriptor.hpp"
#include "machine/matrix_descriptor.hpp"
#include "machine/options.hpp"
#include "machine/tensor_memory.hpp"

namespace tessera::emulator::tcgen05 {

/// Columns of B that count as zero, and the B column they start at (zero-column mask descriptor of .ws).
struct ColumnMask {
    std::vector<bool> zero;  ///< N entries; empty: none
    unsigned shift = 0;
};
/// Reads the 64-bit descriptor. `problem` says which field is wrong.
[[nodiscard]] ColumnMask decode_column_mask(std::uint64_t bits, unsigned m, unsigned n, std::string& problem);

/// The operands of an MMA, with the numbers of one CTA of the pair.
struct MmaOperands {
    MmaForm form;
    InstructionDescriptor descriptor;
    OperandTile a, b;  ///< shared memory; the same in both CTAs
    TensorAddress d, a_address, metadata, scales_a, scales_b;
    bool accumulate = true;
    unsigned scale_d = 0;                     ///< D is multiplied by 2^-scale_d first
    std::array<std::uint32_t, 8> disabled{};  ///< lanes of D that are not written; words 4-7 are the odd CTA's
    ColumnMask columns;

    [[nodiscard]] unsigned ctas() const noexcept { return form.cta_group; }
    /// Of D in the CTA with this number in the pair.
    [[nodiscard]] TensorLanes disabled_lanes(std::size_t cta) const noexcept
    {
        const auto half = [&](std::size_t i) {
            return std::uint64_t{disabled[4 * cta + i + 1]} << 32 | disabled[4 * cta + i];
        };
        return {{half(0), half(2)}};
    }
    [[nodiscard]] unsigned rows_per_cta() const noexcept { return descriptor.m / form.cta_group; }
    /// Bytes in memory of K of one row of A or B. A sparse A stores half of its elements.
    [[nodiscard]] unsigned a_row_bytes() const noexcept { return 32; }
    [[nodiscard]] unsigned b_row_bytes() const noexcept { return form.sparse ? 64 : 32; }
};

/// A part of D whose rows are in consecutive lanes: rows row .. row + rows - 1 of CTA `cta`'s share, from column
/// `column` of D on.
struct DBlock {
    unsigned cta = 0, row = 0, rows = 0, column = 0, columns = 0;
    unsigned lane = 0, tensor_column = 0;
};
[[nodiscard]] std::vector<DBlock> blocks_of(const MmaOperands& operands);

/// Parts of tensor memory that the instruction uses; the same in each CTA.
[[nodiscard]] TensorRegion d_region(const MmaOperands& operands);
[[nodiscard]] TensorRegion a_region(const MmaOperands& operands);
[[nodiscard]] TensorRegion metadata_region(const MmaOperands& operands);
/// Full columns, and the last one if it is partly used.
[[nodiscard]] std::vector<TensorRegion> scale_regions(const MmaOperands& operands, bool of_b);

/// Computes the product. `ctas[1]` for pairs. @return a sentence if the contents of the operands are invalid, else
/// empty
std::string multiply(const MmaOperands& operands, const std::array<Cta*, 2>& ctas, Numerics numerics);

}  // namespace tessera::emulator::tcgen05
