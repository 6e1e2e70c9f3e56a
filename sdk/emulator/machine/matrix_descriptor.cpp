#include "machine/matrix_descriptor.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tessera::emulator {
namespace {

constexpr std::uint64_t field(std::uint64_t bits, unsigned low, unsigned width) noexcept
{
    return (bits >> low) & ((std::uint64_t{1} << width) - 1);
}

/// Start, strides and base offset are in the same place in both forms.
MatrixDescriptor common_fields(std::uint64_t bits) noexcept
{
    MatrixDescriptor descriptor;
    descriptor.start = static_cast<std::uint32_t>(field(bits, 0, 14)) << 4;
    descriptor.leading = static_cast<std::uint32_t>(field(bits, 16, 14)) << 4;
    descriptor.stride = static_cast<std::uint32_t>(field(bits, 32, 14)) << 4;
    descriptor.base_offset = static_cast<std::uint32_t>(field(bits, 49, 3));
    return descriptor;
}

std::string common_problem(std::uint64_t bits)
{
    if (field(bits, 14, 2) != 0) {
        return fmt::format(
            "matrix descriptor {:#018x}: bits 14-15 are not 0; the start address field has 14 bits and takes "
            "(address & 0x3FFFF) >> 4",
            bits);
    }
    if (field(bits, 30, 2) != 0) {
        return fmt::format(
            "matrix descriptor {:#018x}: bits 30-31 are not 0; the leading byte offset field has 14 bits and takes "
            "offset >> 4",
            bits);
    }
    return {};
}

void append(std::vector<OperandTile::Range>& ranges, std::uint32_t begin, std::uint32_t size)
{
    if (!ranges.empty() && ranges.back().end == begin) {
        ranges.back().end += size;
    } else {
        ranges.push_back({begin, begin + size});
    }
}

}  // namespace

std::string_view swizzle_name(TensorSwizzle mode) noexcept
{
    switch (mode) {
        case TensorSwizzle::none: return "no swizzle";
        case TensorSwizzle::span_32: return "the 32-byte swizzle";
        case TensorSwizzle::span_64: return "the 64-byte swizzle";
        case TensorSwizzle::span_128: return "the 128-byte swizzle";
        case TensorSwizzle::span_128_atom_32: return "the 128-byte swizzle with 32-byte atom";
        case TensorSwizzle::span_128_atom_32_flip_8: return "the 128-byte swizzle with 32-byte atom and 8-byte flip";
        case TensorSwizzle::span_128_atom_64: return "the 128-byte swizzle with 64-byte atom";
    }
    return "";
}

DecodedMatrixDescriptor decode_tcgen05_descriptor(std::uint64_t bits)
{
    DecodedMatrixDescriptor decoded{common_fields(bits), common_problem(bits)};
    MatrixDescriptor& descriptor = decoded.descriptor;
    descriptor.leading_absolute = field(bits, 52, 1) != 0;
    const auto code = static_cast<unsigned>(field(bits, 61, 3));
    switch (code) {
        case 1: descriptor.swizzle = TensorSwizzle::span_128_atom_32; break;
        case 2: descriptor.swizzle = TensorSwizzle::span_128; break;
        case 4: descriptor.swizzle = TensorSwizzle::span_64; break;
        case 6: descriptor.swizzle = TensorSwizzle::span_32; break;
        default: break;
    }
    if (!decoded.problem.empty()) {
        return decoded;
    }
    if (field(bits, 46, 3) != 1) {
        decoded.problem = fmt::format(
            "matrix descriptor {:#018x}: bits 46-48 are {}, they must be 1 for tcgen05; {}", bits, field(bits, 46, 3),
            field(bits, 46, 3) == 0 ? "this looks like a wgmma descriptor, whose swizzle codes have other meanings"
                                    : "the stride byte offset field has 14 bits (32-45) and takes offset >> 4");
    } else if (code == 3 || code == 5 || code == 7) {
        decoded.problem = fmt::format(
            "matrix descriptor {:#018x}: swizzle code {} (bits 61-63) does not exist; 0 none, 1 128 bytes with "
            "32-byte atom, 2 128 bytes, 4 64 bytes, 6 32 bytes",
            bits, code);
    } else if (field(bits, 53, 8) != 0) {
        decoded.problem =
            fmt::format("matrix descriptor {:#018x}: bits 53-60 must be 0, they are {:#x}", bits, field(bits, 53, 8));
    } else if (descriptor.leading_absolute) {
        decoded.problem = fmt::format(
            "matrix descriptor {:#018x}: bit 52 (leading dimension as an absolute address) exists on sm_103a only",
            bits);
    }
    return decoded;
}

DecodedMatrixDescriptor decode_wgmma_descriptor(std::uint64_t bits)
{
    DecodedMatrixDescriptor decoded{common_fields(bits), common_problem(bits)};
    switch (field(bits, 62, 2)) {
        case 1: decoded.descriptor.swizzle = TensorSwizzle::span_128; break;
        case 2: decoded.descriptor.swizzle = TensorSwizzle::span_64; break;
        case 3: decoded.descriptor.swizzle = TensorSwizzle::span_32; break;
        default: break;
    }
    if (decoded.problem.empty() && field(bits, 46, 3) != 0) {
        decoded.problem = fmt::format(
            "matrix descriptor {:#018x}: bits 46-48 must be 0 for wgmma, they are {}{}", bits, field(bits, 46, 3),
            field(bits, 46, 3) == 1 ? "; this looks like a tcgen05 descriptor, whose swizzle codes have other meanings"
                                    : "; the stride byte offset field has 14 bits (32-45) and takes offset >> 4");
    }
    if (decoded.problem.empty() && field(bits, 52, 10) != 0) {
        decoded.problem = fmt::format("matrix descriptor {:#018x}: bits 52-61 must be 0 for wgmma, they are {:#x}",
                                      bits, field(bits, 52, 10));
    }
    return decoded;
}

std::vector<OperandTile::Range> OperandTile::ranges() const
{
    std::vector<Range> pieces;
    for_each_piece([&](std::uint32_t address, std::uint32_t size) { pieces.push_back({address, address + size}); });
    std::sort(pieces.begin(), pieces.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    std::vector<Range> merged;
    for (const Range& piece : pieces) {
        if (!merged.empty() && piece.begin <= merged.back().end) {
            merged.back().end = std::max(merged.back().end, piece.end);
        } else {
            merged.push_back(piece);
        }
    }
    return merged;
}

std::vector<OperandTile::Range> OperandTile::cover() const
{
    const MatrixDescriptor& d = descriptor;
    const std::uint32_t span = row_span(d.swizzle);
    if (d.base_offset != 0) {
        return ranges();
    }
    std::vector<Range> result;
    const std::uint32_t group = d.swizzle == TensorSwizzle::span_128_atom_32 ? 4 : 8;
    const std::uint32_t groups = (lines + group - 1) / group;
    // Both kinds of tile are a grid of groups of lines (along `stride`, or `leading` without swizzle) and of blocks of
    // `span` bytes.
    const std::uint32_t blocks =
        d.swizzle != TensorSwizzle::none && major == Major::k ? 1 : (line_bytes + span - 1) / span;
    const bool swapped = d.swizzle == TensorSwizzle::none && major == Major::mn;
    const std::uint32_t group_stride = swapped ? d.leading : d.stride;
    const std::uint32_t block_stride = swapped ? d.stride : d.leading;
    const std::uint32_t start = d.start & ~(span - 1);
    for (std::uint32_t block = 0; block < blocks; ++block) {
        for (std::uint32_t index = 0; index < groups; ++index) {
            const std::uint32_t rows = std::min(group, lines - index * group);
            append(result, (start + block * block_stride + index * group_stride) & 0x3FFFF, rows * span);
        }
    }
    return result;
}

std::string OperandTile::problem(unsigned element_bits) const
{
    const MatrixDescriptor& d = descriptor;
    const std::uint32_t span = row_span(d.swizzle);
    const bool atom_32 = d.swizzle == TensorSwizzle::span_128_atom_32;
    if (major == Major::k && atom_32) {
        return "the 128-byte swizzle with 32-byte atom is for MN-major operands only";
    }
    if (major == Major::mn && element_bits == 32 && !atom_32) {
        return fmt::format(
            "an MN-major operand of 32-bit elements needs the 128-byte swizzle with 32-byte atom, not {}",
            swizzle_name(d.swizzle));
    }
    if (major == Major::mn && element_bits != 32 && atom_32) {
        return fmt::format(
            "the 128-byte swizzle with 32-byte atom is for MN-major operands of 32-bit elements, these have {} bits",
            element_bits);
    }
    if (major == Major::mn && element_bits < 8) {
        return fmt::format("operands of {}-bit elements are K-major only", element_bits);
    }
    if (d.swizzle == TensorSwizzle::none) {
        const std::uint32_t across = major == Major::k ? d.stride : d.leading,
                            along = major == Major::k ? d.leading : d.stride;
        if (lines > 8 && across == 0) {
            return fmt::format("the {} byte offset is 0, so all groups of 8 {} overlap",
                               major == Major::k ? "stride" : "leading", major == Major::k ? "rows" : "K rows");
        }
        if (line_bytes > chunk_bytes && along == 0) {
            return fmt::format("the {} byte offset is 0, so all 16-byte chunks of a line overlap",
                               major == Major::k ? "leading" : "stride");
        }
        return {};
    }
    const std::uint32_t group = atom_32 ? 4 : 8;
    if (lines > group && d.stride == 0) {
        return fmt::format("the stride byte offset is 0, so all groups of {} lines overlap", group);
    }
    if (major == Major::mn && line_bytes > span && d.leading == 0) {
        return fmt::format("the leading byte offset is 0, so all blocks of {} bytes overlap", span);
    }
    const std::uint32_t within = d.start % span;
    if (within != 0 && within + line_bytes > span) {
        return fmt::format(
            "the start address {:#x} is {} bytes into a row of {} bytes of {}, and the rest of the row is too short "
            "for a line of {} bytes; step to the next block instead",
            d.start, within, span, swizzle_name(d.swizzle), line_bytes);
    }
    if (major == Major::k && line_bytes > span) {
        return fmt::format("a K step of {} bytes is wider than {}", line_bytes, swizzle_name(d.swizzle));
    }
    return {};
}

}  // namespace tessera::emulator
