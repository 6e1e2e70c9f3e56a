#include "execute/tcgen05_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "execute/tcgen05.hpp"
#include "numerics/formats.hpp"
#include "numerics/tensor_sum.hpp"

namespace tessera::emulator::tcgen05 {
namespace {

using numerics::CodeView;

bool four_bit_packed(const MmaOperands& operands) noexcept
{
    return operands.form.kind == MmaKind::mxf4 || operands.form.kind == MmaKind::mxf4nvf4;
}

/// Bytes of an element after gathering.
unsigned cell_bytes(MmaElement element) noexcept { return std::max(1u, bits_of(element) / 8); }

/// Element codes, one per cell. [outer][k], or [k][outer] if `mn_major`.
struct Codes {
    std::vector<std::byte> bytes;
    unsigned cell = 1;
    unsigned outer = 0, k = 0;
    bool mn_major = false;

    [[nodiscard]] std::size_t place(unsigned row, unsigned depth) const noexcept
    {
        return (mn_major ? std::size_t{depth} * outer + row : std::size_t{row} * k + depth) * cell;
    }
    [[nodiscard]] CodeView view(MmaElement element, bool negate, unsigned first_row = 0) const
    {
        return {.format = format_of(element),
                .codes = bytes.data() + place(first_row, 0),
                .outer_stride = mn_major ? 1 : static_cast<std::ptrdiff_t>(k),
                .k_stride = mn_major ? static_cast<std::ptrdiff_t>(outer) : 1,
                .negate = negate};
    }
};

/// Unpacks two 4-bit codes per byte, low code first, to one per byte.
void unpack_nibbles(std::vector<std::byte>& bytes)
{
    std::vector<std::byte> codes(2 * bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        codes[2 * i] = bytes[i] & std::byte{0xF};
        codes[2 * i + 1] = bytes[i] >> 4;
    }
    bytes = std::move(codes);
}

/// Reads an operand from shared memory: of one CTA, or the halves of B of both CTAs.
void read_shared(Codes& codes, const MmaOperands& operands, const OperandTile& tile, MmaElement element,
                 std::initializer_list<const Cta*> ctas, unsigned row_bytes, unsigned rows_per_cta)
{
    codes.cell = cell_bytes(element);
    codes.mn_major = tile.major == Major::mn;
    codes.outer = rows_per_cta * static_cast<unsigned>(ctas.size());
    codes.k = four_bit_packed(operands) ? 2 * row_bytes : row_bytes / codes.cell;
    codes.bytes.resize(std::size_t{codes.outer} * row_bytes);
    std::size_t offset = 0;
    for (const Cta* cta : ctas) {
        gather(*cta, tile, codes.bytes.data() + offset,
               codes.mn_major ? std::size_t{codes.outer} * codes.cell : row_bytes);
        offset += codes.mn_major ? std::size_t{rows_per_cta} * codes.cell : std::size_t{rows_per_cta} * row_bytes;
    }
    if (four_bit_packed(operands)) {
        unpack_nibbles(codes.bytes);
    } else if (bits_of(element) < 8) {
        unpack_padded(codes.bytes.data(), codes.bytes.size(), bits_of(element));
    }
}

/// Reads A from tensor memory: rows in the lanes from `lane` on, 32 bytes of each.
void read_tensor(Codes& codes, const MmaOperands& operands, TensorMemory& memory, unsigned lane, unsigned rows)
{
    const MmaElement element = operands.descriptor.a;
    const unsigned row_bytes = operands.a_row_bytes();
    codes.cell = cell_bytes(element);
    codes.mn_major = false;
    codes.outer = rows;
    codes.k = four_bit_packed(operands) ? 2 * row_bytes : row_bytes / codes.cell;
    codes.bytes.resize(std::size_t{rows} * row_bytes);
    for (unsigned row = 0; row < rows; ++row) {
        const unsigned from = operands.form.shift_a ? std::min(lane + row + 1, tensor_lanes - 1) : lane + row;
        std::memcpy(codes.bytes.data() + std::size_t{row} * row_bytes, memory.at({from, operands.a_address.column}),
                    row_bytes);
    }
    if (four_bit_packed(operands)) {
        unpack_nibbles(codes.bytes);
    } else if (bits_of(element) < 8) {
        // 8-bit containers: 6-bit codes are in bits 0-5, E2M1 in bits 2-5.
        const int shift = element == MmaElement::e2m1 ? 2 : 0;
        const std::byte mask{element == MmaElement::e2m1 ? std::uint8_t{0xF} : std::uint8_t{0x3F}};
        std::ranges::transform(codes.bytes, codes.bytes.begin(),
                               [&](std::byte container) { return (container >> shift) & mask; });
    }
}

// ---- structured sparsity ----

/// Elements of a chunk of K, and how many of them are stored.
struct Sparsity {
    unsigned chunk, stored, run;  ///< run: elements placed by one index
};
Sparsity sparsity_of(MmaKind kind) noexcept
{
    switch (kind) {
        case MmaKind::tf32: return {2, 1, 1};
        case MmaKind::mxf4:
        case MmaKind::mxf4nvf4: return {8, 4, 2};
        default: return {4, 2, 1};
    }
}

/// The 4 bits of metadata for chunk `chunk` of row `row` of a block that starts at lane `lane`. For 16- and 32-bit
/// elements, 16 rows share 16 lanes of one column: lane i < 8 has the first halves of rows i and i + 8, lane i + 8
/// their second halves. Otherwise each row has two columns of its lane.
unsigned metadata_of(TensorMemory& memory, const MmaOperands& operands, unsigned lane, unsigned row, unsigned chunk)
{
    const TensorAddress base = operands.metadata;
    if (operands.form.kind == MmaKind::f16 || operands.form.kind == MmaKind::tf32) {
        const unsigned from = lane + row / 16 * 16 + row % 8 + 8 * (chunk / 4);
        const std::uint32_t word = *memory.at({from, base.column + operands.descriptor.sparsity_selector});
        return word >> (16 * (row / 8 % 2) + 4 * (chunk % 4)) & 0xF;
    }
    return *memory.at({lane + row, base.column + chunk / 8}) >> (4 * (chunk % 8)) & 0xF;
}

/// If all elements of a chunk are zero, its metadata does not matter: CUTLASS's compressor writes 0b0000 there.
bool is_zero(const Codes& codes, unsigned row, unsigned first, unsigned count)
{
    for (unsigned k = first; k < first + count; ++k) {
        const auto* const at = codes.bytes.data() + codes.place(row, k);
        if (std::any_of(at, at + codes.cell, [](auto byte) { return byte != decltype(byte){}; })) {
            return false;
        }
    }
    return true;
}

/// Moves the stored elements of a sparse A to the places given by the metadata, with zeros elsewhere.
std::string expand(Codes& codes, const MmaOperands& operands, TensorMemory& memory, unsigned lane, unsigned first_row,
                   unsigned rows)
{
    const Sparsity sparsity = sparsity_of(operands.form.kind);
    Codes dense;
    dense.cell = codes.cell;
    dense.outer = rows;
    dense.k = 2 * codes.k;
    dense.bytes.resize(std::size_t{rows} * dense.k * dense.cell);
    std::string problem;
    const unsigned chunks = dense.k / sparsity.chunk;
    for (unsigned row = 0; row < rows; ++row) {
        for (unsigned chunk = 0; chunk < chunks; ++chunk) {
            const unsigned bits = metadata_of(memory, operands, lane, row, chunk);
            const unsigned first = bits & 3, second = bits >> 2;
            const bool one_of_two = sparsity.chunk == 2;
            const bool valid = one_of_two ? bits == 0b0100 || bits == 0b1110 : first < second;
            if (problem.empty() && !valid &&
                !is_zero(codes, first_row + row, chunk * sparsity.stored, sparsity.stored)) {
                problem =
                    fmt::format("sparsity metadata {:#06b} of row {}, chunk {} of A: {}", bits, first_row + row, chunk,
                                one_of_two ? "only 0b0100 and 0b1110 are defined"
                                           : "the second index must be larger than the first");
            }
            for (unsigned i = 0; i < sparsity.stored; ++i) {
                const unsigned index = one_of_two ? first / 2 : (i / sparsity.run == 0 ? first : second);
                const unsigned target = chunk * sparsity.chunk + index * sparsity.run + i % sparsity.run;
                std::memcpy(dense.bytes.data() + dense.place(row, target),
                            codes.bytes.data() + codes.place(first_row + row, chunk * sparsity.stored + i), codes.cell);
            }
        }
    }
    codes = std::move(dense);
    return problem;
}

// ---- scale factors ----

/// Scale factors of `count` rows from one 32-lane partition: [row][scales].
void read_scales(std::vector<std::uint8_t>& scales, TensorMemory& memory, TensorAddress base, unsigned partition,
                 unsigned count, unsigned id, unsigned per_row)
{
    for (unsigned row = 0; row < count; ++row) {
        const std::uint32_t word = *memory.at({32 * partition + row % 32, base.column + row / 32});
        for (unsigned i = 0; i < per_row; ++i) {
            scales.push_back(static_cast<std::uint8_t>(word >> (8 * (id + i))));
        }
    }
}

/// The scale factors must be equal in all partitions that hardware may read.
std::string check_replicas(TensorMemory& memory, TensorAddress base, unsigned count, unsigned first_partition,
                           unsigned partitions, unsigned id, unsigned per_row, char which)
{
    const std::uint32_t mask = per_row == 4 ? 0xFFFFFFFF : ((1u << (8 * per_row)) - 1) << (8 * id);
    for (unsigned row = 0; row < count; ++row) {
        const std::uint32_t word = *memory.at({32 * first_partition + row % 32, base.column + row / 32}) & mask;
        for (unsigned other = first_partition + 1; other < first_partition + partitions; ++other) {
            if ((*memory.at({32 * other + row % 32, base.column + row / 32}) & mask) != word) {
                return fmt::format(
                    "scale factors of {}: column {} differs between lane {} and lane {}; all partitions of 32 lanes "
                    "must hold the same (tcgen05.cp with .warpx4)",
                    which, base.column + row / 32, 32 * first_partition + row % 32, 32 * other + row % 32);
            }
        }
    }
    return {};
}

// ---- the product ----

/// Buffers that the next instruction of this CPU thread reuses.
struct Scratch {
    std::array<Codes, 2> a;
    Codes b, block_a;
    std::array<std::vector<std::uint8_t>, 2> scales_a;
    std::vector<std::uint8_t> scales_b;
    std::vector<float> values_a, values_b, d;
    std::vector<std::int16_t> integers_a, integers_b;
    numerics::ExactA exact_a;
    numerics::ExactB exact_b;
};

void widen(std::vector<std::int16_t>& out, const Codes& codes, bool is_signed, unsigned first_row, unsigned rows,
           bool k_outside)
{
    out.resize(std::size_t{rows} * codes.k);
    for (unsigned row = 0; row < rows; ++row) {
        for (unsigned k = 0; k < codes.k; ++k) {
            const auto code = static_cast<std::uint8_t>(codes.bytes[codes.place(first_row + row, k)]);
            const auto value = static_cast<std::int16_t>(is_signed ? static_cast<std::int8_t>(code) : code);
            out[k_outside ? std::size_t{k} * rows + row : std::size_t{row} * codes.k + k] = value;
        }
    }
}

class Product {
public:
    Product(const MmaOperands& operands, const std::array<Cta*, 2>& ctas, Numerics numerics, Scratch& scratch)
        : operands_(operands), ctas_(ctas), numerics_(numerics), scratch_(scratch)
    {}

    std::string run()
    {
        read_b();
        if (!operands_.form.a_in_tensor_memory) {
            for (unsigned v = 0; v < operands_.ctas(); ++v) {
                read_shared(scratch_.a[v], operands_, operands_.a, operands_.descriptor.a, {ctas_[v]},
                            operands_.a_row_bytes(), operands_.rows_per_cta());
            }
        }
        for (const DBlock& block : blocks_of(operands_)) {
            multiply_block(block);
        }
        return problem_;
    }

private:
    void note(std::string problem)
    {
        if (problem_.empty()) {
            problem_ = std::move(problem);
        }
    }

    void read_b()
    {
        const unsigned rows = operands_.descriptor.n / operands_.ctas() + operands_.columns.shift;
        Codes& b = scratch_.b;
        if (operands_.ctas() == 2) {
            read_shared(b, operands_, operands_.b, operands_.descriptor.b, {ctas_[0], ctas_[1]},
                        operands_.b_row_bytes(), rows);
        } else {
            read_shared(b, operands_, operands_.b, operands_.descriptor.b, {ctas_[0]}, operands_.b_row_bytes(), rows);
        }
        for (unsigned column = 0; column < operands_.columns.zero.size(); ++column) {
            for (unsigned k = 0; operands_.columns.zero[column] && k < b.k; ++k) {
                std::memset(b.bytes.data() + b.place(column + operands_.columns.shift, k), 0, b.cell);
            }
        }
    }

    /// Columns of B for a block, as rows in B's storage.
    [[nodiscard]] unsigned b_row(const DBlock& block) const noexcept { return block.column + operands_.columns.shift; }

    void multiply_block(const DBlock& block)
    {
        TensorMemory& memory = *ctas_[block.cta]->tensor_memory;
        const Codes* a = &scratch_.a[block.cta];
        unsigned row = block.row;
        if (operands_.form.a_in_tensor_memory) {
            read_tensor(scratch_.block_a, operands_, memory, block.lane, block.rows);
            a = &scratch_.block_a;
            row = 0;
        }
        if (operands_.form.sparse) {
            if (a != &scratch_.block_a) {
                scratch_.block_a = *a;
                a = &scratch_.block_a;
                if (a->mn_major) {
                    to_k_major(scratch_.block_a);
                }
            }
            note(expand(scratch_.block_a, operands_, memory, block.lane, row, block.rows));
            row = 0;
        }
        if (operands_.form.scales != 0) {
            read_block_scales(block, memory);
        }
        if (operands_.descriptor.d == MmaSum::s32) {
            multiply_integers(block, memory, *a, row);
        } else {
            multiply_floats(block, memory, *a, row);
        }
    }

    static void to_k_major(Codes& codes)
    {
        Codes result = codes;
        result.mn_major = false;
        for (unsigned row = 0; row < codes.outer; ++row) {
            for (unsigned k = 0; k < codes.k; ++k) {
                std::memcpy(result.bytes.data() + result.place(row, k), codes.bytes.data() + codes.place(row, k),
                            codes.cell);
            }
        }
        codes = std::move(result);
    }

    void read_block_scales(const DBlock& block, TensorMemory& memory)
    {
        const InstructionDescriptor& d = operands_.descriptor;
        const unsigned per_row = operands_.form.scales;
        std::vector<std::uint8_t>& a = scratch_.scales_a[0];
        a.clear();
        scratch_.scales_b.clear();
        // Rows of A always start at 0: block-scaled kinds use whole CTAs.
        read_scales(a, memory, operands_.scales_a, 0, block.rows, d.sfa_id, per_row);
        note(check_replicas(memory, operands_.scales_a, block.rows, 0, 4, d.sfa_id, per_row, 'A'));
        // In the 2 x 2 data path, each half of the lanes has the scale factors of its own columns.
        const bool halves = d.data_path == DataPath::b;
        const unsigned partition = halves ? block.lane / 32 : 0;
        read_scales(scratch_.scales_b, memory, operands_.scales_b, partition, block.columns, d.sfb_id, per_row);
        note(check_replicas(memory, operands_.scales_b, block.columns, partition, halves ? 2 : 4, d.sfb_id, per_row,
                            'B'));
    }

    [[nodiscard]] bool disabled(const DBlock& block, unsigned row) const noexcept
    {
        const unsigned lane = block.lane + row;
        return (operands_.disabled[4 * block.cta + lane / 32] >> (lane % 32) & 1) != 0;
    }
    [[nodiscard]] bool any_disabled() const noexcept
    {
        return std::ranges::any_of(operands_.disabled, [](std::uint32_t word) { return word != 0; });
    }

    void multiply_floats(const DBlock& block, TensorMemory& memory, const Codes& a, unsigned row)
    {
        const bool half = operands_.descriptor.d == MmaSum::f16;
        if (!half && !any_disabled()) {
            sum(block, a, row, reinterpret_cast<float*>(memory.at({block.lane, block.tensor_column})),
                TensorMemory::lane_stride);
            return;
        }
        std::vector<float>& d = scratch_.d;
        d.resize(std::size_t{block.rows} * block.columns);
        for (unsigned r = 0; operands_.accumulate && r < block.rows; ++r) {
            const std::uint32_t* words = memory.at({block.lane + r, block.tensor_column});
            for (unsigned c = 0; c < block.columns; ++c) {
                d[std::size_t{r} * block.columns + c] =
                    half ? numerics::float_from_f16(static_cast<std::uint16_t>(words[c]))
                         : std::bit_cast<float>(words[c]);
            }
        }
        sum(block, a, row, d.data(), block.columns);
        for (unsigned r = 0; r < block.rows; ++r) {
            std::uint32_t* words = memory.at({block.lane + r, block.tensor_column});
            for (unsigned c = 0; !disabled(block, r) && c < block.columns; ++c) {
                const float value = d[std::size_t{r} * block.columns + c];
                words[c] = half ? std::uint32_t{numerics::f16_from_float(value)} : std::bit_cast<std::uint32_t>(value);
            }
        }
    }

    /// D of the block, as floats.
    void sum(const DBlock& block, const Codes& a, unsigned row, float* d, std::size_t ldd)
    {
        if (numerics_ == Numerics::exact) {
            sum_exactly(block, a, row, d, ldd);
        } else {
            sum_fast(block, a, row, d, ldd);
        }
    }

    void sum_exactly(const DBlock& block, const Codes& a, unsigned row, float* d, std::size_t ldd)
    {
        const InstructionDescriptor& desc = operands_.descriptor;
        const Codes& b = scratch_.b;
        if (four_bit_packed(operands_)) {
            const numerics::BlockScales scales{
                .format = desc.scale_ue8m0 ? numerics::Format::ue8m0 : numerics::Format::ue4m3,
                .per_row = operands_.form.scales,
                .a = scratch_.scales_a[0].data(),
                .b = scratch_.scales_b.data()};
            numerics::multiply_exact_mxf4(
                block.rows, block.columns, a.k, reinterpret_cast<const std::uint8_t*>(a.bytes.data()) + a.place(row, 0),
                reinterpret_cast<const std::uint8_t*>(b.bytes.data()) + b.place(b_row(block), 0), scales, d, ldd,
                operands_.accumulate, desc.negate_a != desc.negate_b);
            return;
        }
        const auto accumulator = desc.d == MmaSum::f16 ? numerics::Accumulator::f16 : numerics::Accumulator::f32;
        const numerics::SumModel model =
            numerics::sum_model(numerics::TensorUnit::blackwell, format_of(desc.a), accumulator, desc.k);
        scratch_.exact_a.assign(a.view(desc.a, desc.negate_a, row), block.rows, a.k);
        scratch_.exact_b.assign(b.view(desc.b, desc.negate_b, b_row(block)), block.columns, b.k);
        const numerics::Accumulation how{.accumulate = operands_.accumulate,
                                         .scale_shift = static_cast<int>(operands_.scale_d)};
        if (operands_.form.scales != 0) {
            numerics::multiply_exact_mxf8(model, scratch_.exact_a, scratch_.exact_b, scratch_.scales_a[0].data(),
                                          scratch_.scales_b.data(), d, ldd, how);
        } else {
            numerics::multiply_exact(model, scratch_.exact_a, scratch_.exact_b, d, ldd, how);
        }
    }

    void sum_fast(const DBlock& block, const Codes& a, unsigned row, float* d, std::size_t ldd)
    {
        const InstructionDescriptor& desc = operands_.descriptor;
        const unsigned k = a.k, n = block.columns;
        scratch_.values_a.resize(std::size_t{block.rows} * k);
        scratch_.values_b.resize(std::size_t{n} * k);
        numerics::decode_tile(a.view(desc.a, desc.negate_a, row), block.rows, k, scratch_.values_a.data(), k, 1);
        numerics::decode_tile(scratch_.b.view(desc.b, desc.negate_b, b_row(block)), n, k, scratch_.values_b.data(), 1,
                              n);
        if (const unsigned per_row = operands_.form.scales; per_row != 0) {
            const auto format = desc.scale_ue8m0 ? numerics::Format::ue8m0 : numerics::Format::ue4m3;
            numerics::scale_tile(scratch_.values_a.data(), block.rows, k, k, 1, format, scratch_.scales_a[0].data(),
                                 per_row);
            numerics::scale_tile(scratch_.values_b.data(), n, k, 1, n, format, scratch_.scales_b.data(), per_row);
        }
        if (operands_.accumulate && operands_.scale_d != 0) {
            numerics::scale_accumulator(block.rows, n, d, ldd, static_cast<int>(operands_.scale_d));
        }
        numerics::multiply_fast(block.rows, n, k, scratch_.values_a.data(), k, scratch_.values_b.data(), n, d, ldd,
                                operands_.accumulate);
        if (desc.d == MmaSum::f16) {
            numerics::round_tile_to_f16(block.rows, n, d, ldd);
        }
    }

    void multiply_integers(const DBlock& block, TensorMemory& memory, const Codes& a, unsigned row)
    {
        const InstructionDescriptor& desc = operands_.descriptor;
        widen(scratch_.integers_a, a, desc.a == MmaElement::s8, row, block.rows, false);
        widen(scratch_.integers_b, scratch_.b, desc.b == MmaElement::s8, b_row(block), block.columns, true);
        auto* d = reinterpret_cast<std::int32_t*>(memory.at({block.lane, block.tensor_column}));
        if (!any_disabled()) {
            numerics::multiply_integer(block.rows, block.columns, a.k, scratch_.integers_a.data(),
                                       scratch_.integers_b.data(), d, TensorMemory::lane_stride, operands_.accumulate,
                                       desc.saturate);
            return;
        }
        for (unsigned r = 0; r < block.rows; ++r) {
            if (!disabled(block, r)) {
                numerics::multiply_integer(1, block.columns, a.k, scratch_.integers_a.data() + std::size_t{r} * a.k,
                                           scratch_.integers_b.data(), d + r * TensorMemory::lane_stride,
                                           TensorMemory::lane_stride, operands_.accumulate, desc.saturate);
            }
        }
    }

    const MmaOperands& operands_;
    const std::array<Cta*, 2>& ctas_;
    Numerics numerics_;
    Scratch& scratch_;
    std::string problem_;
};

}  // namespace

std::string multiply(const MmaOperands& operands, const std::array<Cta*, 2>& ctas, Numerics numerics)
{
    static thread_local Scratch scratch;
    return Product(operands, ctas, numerics, scratch).run();
}

}  // namespace tessera::emulator::tcgen05
