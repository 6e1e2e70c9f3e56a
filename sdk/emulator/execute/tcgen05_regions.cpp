// Which parts of tensor memory one tcgen05.mma uses, and which columns of B count as zero.

#include <fmt/format.h>

#include "execute/tcgen05_product.hpp"

namespace tessera::emulator::tcgen05 {
namespace {

/// Lanes of the rows of one CTA.
TensorLanes lanes_of(const MmaOperands& operands)
{
    const DataPath path = operands.descriptor.data_path;
    if (path != DataPath::f && path != DataPath::c) {
        return TensorLanes::range(0, tensor_lanes);
    }
    TensorLanes lanes;
    for (unsigned quarter = 0; quarter < 4; ++quarter) {
        lanes = lanes | TensorLanes::range(32 * quarter + operands.d.lane, 16);
    }
    return lanes;
}

}  // namespace

ColumnMask decode_column_mask(std::uint64_t bits, unsigned m, unsigned n, std::string& problem)
{
    const auto field = [&](unsigned low, unsigned width) {
        return static_cast<unsigned>(bits >> low & ((std::uint64_t{1} << width) - 1));
    };
    ColumnMask mask;
    mask.shift = field(56, 6);
    const unsigned largest = m == 32 ? 16 : 32;
    if (field(36, 3) != 0 || field(62, 2) != 0) {
        problem = fmt::format("zero-column mask descriptor {:#018x}: bits 36-38 and 62-63 must be 0", bits);
    } else if (mask.shift > largest) {
        problem = fmt::format(
            "zero-column mask descriptor {:#018x}: the column shift (bits 56-61) is {}; with M = {} it is at most {}",
            bits, mask.shift, m, largest);
    }
    if (field(39, 1) == 0) {
        return mask;
    }
    // Runs of zero columns (skip span + 1) and of used columns (use span + 1) alternate. Each sub-mask starts somewhere
    // in this pattern.
    const unsigned skipped = field(40, 8) + 1, used = field(48, 8) + 1;
    const unsigned parts = m == 32 ? 4 : m == 64 ? 2 : 1;
    mask.zero.resize(n);
    for (unsigned part = 0; part < parts; ++part) {
        const bool starts_zero = field(32 + part, 1) != 0;
        const unsigned start = field(8 * part, 8);
        for (unsigned column = 0; column < n / parts; ++column) {
            const unsigned place = (start + column) % (skipped + used);
            mask.zero[part * (n / parts) + column] = starts_zero ? place < skipped : place >= used;
        }
    }
    return mask;
}

std::vector<DBlock> blocks_of(const MmaOperands& operands)
{
    const InstructionDescriptor& d = operands.descriptor;
    const unsigned column = operands.d.column;
    std::vector<DBlock> blocks;
    const auto add = [&](unsigned cta, unsigned row, unsigned rows, unsigned part, unsigned parts, unsigned lane) {
        blocks.push_back({.cta = cta,
                          .row = row,
                          .rows = rows,
                          .column = part * (d.n / parts),
                          .columns = d.n / parts,
                          .lane = lane,
                          .tensor_column = column});
    };
    for (unsigned cta = 0; cta < operands.ctas(); ++cta) {
        switch (d.data_path) {
            case DataPath::a:
            case DataPath::d: add(cta, 0, 128, 0, 1, 0); break;
            case DataPath::b:
            case DataPath::e:
                add(cta, 0, 64, 0, 2, 0);
                add(cta, 0, 64, 1, 2, 64);
                break;
            case DataPath::c:
            case DataPath::f:
                for (unsigned quarter = 0; quarter < 4; ++quarter) {
                    add(cta, 16 * quarter, 16, 0, 1, 32 * quarter + operands.d.lane);
                }
                break;
            case DataPath::g:
                for (unsigned quarter = 0; quarter < 4; ++quarter) {
                    add(cta, 0, 32, quarter, 4, 32 * quarter);
                }
                break;
        }
    }
    return blocks;
}

TensorRegion d_region(const MmaOperands& operands)
{
    const DataPath path = operands.descriptor.data_path;
    const unsigned parts = path == DataPath::b || path == DataPath::e ? 2 : path == DataPath::g ? 4 : 1;
    return {lanes_of(operands), operands.d.column, operands.descriptor.n / parts};
}

TensorRegion a_region(const MmaOperands& operands)
{
    return {lanes_of(operands), operands.a_address.column, operands.a_row_bytes() / 4};
}

TensorRegion metadata_region(const MmaOperands& operands)
{
    const bool one_column = operands.form.kind == MmaKind::f16 || operands.form.kind == MmaKind::tf32;
    return {lanes_of(operands), operands.metadata.column + (one_column ? operands.descriptor.sparsity_selector : 0),
            one_column ? 1u : 2u};
}

std::vector<TensorRegion> scale_regions(const MmaOperands& operands, bool of_b)
{
    const InstructionDescriptor& d = operands.descriptor;
    const unsigned count = !of_b ? operands.rows_per_cta() : d.data_path == DataPath::b ? d.n / 2 : d.n;
    const TensorAddress base = of_b ? operands.scales_b : operands.scales_a;
    std::vector<TensorRegion> regions;
    if (count / 32 > 0) {
        regions.push_back({TensorLanes::range(0, tensor_lanes), base.column, count / 32});
    }
    if (count % 32 != 0) {
        TensorLanes lanes;
        for (unsigned partition = 0; partition < 4; ++partition) {
            lanes = lanes | TensorLanes::range(32 * partition, count % 32);
        }
        regions.push_back({lanes, base.column + count / 32, 1});
    }
    return regions;
}

}  // namespace tessera::emulator::tcgen05
