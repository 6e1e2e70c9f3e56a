#include "execute/tcgen05_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "execute/element_codes.hpp"
#include "execute/tcgen05.hpp"
#include "numerics/formats.hpp"
#include "numerics/tensor_sum.hpp"

namespace tessera::emulator::tcgen05 {
namespace {

using numerics::CodeView;

bool four_bit_packed(const MmaOperands& operands) noexcept { return is_four_bit(operands.form.kind); }

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

/// Unpacks two codes per byte to one per byte.
void unpack_nibbles(std::vector<std::byte>& bytes)
{
    std::vector<std::byte> codes(2 * bytes.size());
    emulator::unpack_nibbles(bytes.data(), bytes.size(), codes.data());
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
        unpack_containers(codes.bytes.data(), codes.bytes.size(), element);
    }
}

// ---- structured sparsity ----

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
            const bool valid =
                place_chunk(sparsity, bits, codes.bytes.data() + codes.place(first_row + row, chunk * sparsity.stored),
                            codes.cell, dense.bytes.data() + dense.place(row, chunk * sparsity.chunk));
            if (problem.empty() && !valid) {
                problem =
                    fmt::format("sparsity metadata {:#06b} of row {}, chunk {} of A: {}", bits, first_row + row, chunk,
                                sparsity.chunk == 2 ? "only 0b0100 and 0b1110 are defined"
                                                    : "the second index must be larger than the first");
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
    std::vector<float> d;
    std::vector<std::int16_t> integers_a, integers_b;
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
        const InstructionDescriptor& desc = operands_.descriptor;
        CodedProduct product{
            .kind = operands_.form.kind,
            .a = a.view(desc.a, desc.negate_a, row),
            .b = scratch_.b.view(desc.b, desc.negate_b, b_row(block)),
            .m = block.rows,
            .n = block.columns,
            .k = a.k,
            .instruction_k = desc.k,
            .accumulator = desc.d == MmaSum::f16 ? numerics::Accumulator::f16 : numerics::Accumulator::f32,
            .how = {.accumulate = operands_.accumulate, .scale_shift = static_cast<int>(operands_.scale_d)}};
        if (operands_.form.scales != 0) {
            product.scales = {.format = desc.scale_ue8m0 ? numerics::Format::ue8m0 : numerics::Format::ue4m3,
                              .per_row = operands_.form.scales,
                              .a = scratch_.scales_a[0].data(),
                              .b = scratch_.scales_b.data()};
        }
        add_product(product, numerics_, d, ldd);
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
