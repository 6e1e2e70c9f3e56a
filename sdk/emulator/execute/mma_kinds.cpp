// mma.sync and mma.sp.sync with .kind, which compute capability 12.x has: floats of 8, 6 and 4 bits, mixed or with block
// scales (PTX ISA 9.7.14.3, 9.7.14.5.14 and 9.7.14.6.3).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <string_view>

#include "execute/element_codes.hpp"
#include "execute/warp_matrix.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"

namespace tessera::emulator {
namespace {

constexpr unsigned rows = 16, columns = 8;
constexpr unsigned longest_k = 128;

/// Scale factors of A or B: a word of each lane, and which bytes of which lanes count.
struct ScaleOperand {
    Ref data = no_row;
    Ref byte = no_row, thread = no_row;  ///< 16 bits
};

struct KindProduct final : Payload {
    MmaKind kind = MmaKind::f8f6f4;
    MmaElement a_element = MmaElement::e4m3, b_element = MmaElement::e4m3;
    SumType sum = SumType::f32;
    unsigned k = 0;
    OperandFragment a, b;
    AccumulatorFragment sums;
    std::vector<Ref> a_registers, b_registers, c_registers, d_registers;
    Ref metadata = no_row;  ///< of a sparse A
    unsigned scales = 0;    ///< factors per row; 0 without block scaling
    numerics::Format scale_format = numerics::Format::ue8m0;
    ScaleOperand scale_a, scale_b;

    [[nodiscard]] bool sparse() const noexcept { return metadata != no_row; }
};

// ---- execution ----

using Codes = std::array<std::byte, rows * longest_k>;

/// One code per byte, row by row.
void read_codes(Warp& warp, const KindProduct& payload, const OperandFragment& fragment, std::span<const Ref> registers,
                MmaElement element, Codes& codes)
{
    const std::size_t bytes = fragment.rows * fragment.line_bytes();
    if (is_four_bit(payload.kind)) {
        Codes packed;
        fragment.gather(warp, registers, packed.data());
        unpack_nibbles(packed.data(), bytes, codes.data());
    } else {
        fragment.gather(warp, registers, codes.data());
        unpack_containers(codes.data(), bytes, element);
    }
}

/// Expands a sparse A. Returns false if its metadata is not defined.
bool expand(Warp& warp, const KindProduct& payload, Codes& codes)
{
    const Sparsity sparsity = sparsity_of(payload.kind);
    const std::uint32_t* const metadata = warp.row<std::uint32_t>(payload.metadata);
    const Codes stored = codes;
    codes.fill(std::byte{});
    bool valid = true;
    const unsigned chunks = payload.k / sparsity.chunk;
    for (unsigned row = 0; row < rows; ++row) {
        for (unsigned chunk = 0; chunk < chunks; ++chunk) {
            const unsigned bits = metadata_nibble(metadata, 0, Element::u8, chunks, row, chunk);
            valid &= place_chunk(sparsity, bits, stored.data() + (row * chunks + chunk) * sparsity.stored, 1,
                                 codes.data() + (row * chunks + chunk) * sparsity.chunk);
        }
    }
    return valid;
}

/// A selector's value. Hardware takes it from a uniform register, of which a warp has one.
unsigned read_selector(Warp& warp, const Operation& operation, LaneMask active, Ref row, unsigned limit, unsigned step,
                       std::string_view name)
{
    const auto* const values = warp.row<std::uint16_t>(row);
    const unsigned value = values[std::countr_zero(active)];
    LaneMask wrong = 0;
    for_each_lane(active, [&](unsigned lane) {
        const bool right = values[lane] == value && value < limit && value % step == 0;
        wrong |= right ? 0 : LaneMask{1} << lane;
    });
    if (wrong != 0 && warp.checks()) {
        warp.report(operation, FindingKind::invalid_operand, wrong,
                    fmt::format("{} is {}; it must be the same in all lanes, less than {} and a multiple of {}", name,
                                values[std::countr_zero(wrong)], limit, step));
    }
    return value % limit / step * step;
}

/// [row][scale] of `count` rows. `lane_of(row, thread)` has a row's word.
template <typename LaneOf>
std::array<std::uint8_t, 4 * rows> read_scales(Warp& warp, const Operation& operation, LaneMask active,
                                               const ScaleOperand& operand, unsigned scales, unsigned count,
                                               unsigned threads, char which, LaneOf&& lane_of)
{
    const unsigned byte = read_selector(warp, operation, active, operand.byte, scales == 4 ? 1 : 4, scales == 2 ? 2 : 1,
                                        fmt::format("byte-id-{}", which));
    const unsigned thread =
        read_selector(warp, operation, active, operand.thread, threads, 1, fmt::format("thread-id-{}", which));
    const auto* const words = warp.row<std::uint32_t>(operand.data);
    std::array<std::uint8_t, 4 * rows> result{};
    for (unsigned row = 0; row < count; ++row) {
        for (unsigned i = 0; i < scales; ++i) {
            result[row * scales + i] = static_cast<std::uint8_t>(words[lane_of(row, thread)] >> (8 * (byte + i)));
        }
    }
    return result;
}

Step execute_kind_product(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    const auto& payload = operation.as<KindProduct>();
    Codes a, b;
    read_codes(warp, payload, payload.a, payload.a_registers, payload.a_element, a);
    read_codes(warp, payload, payload.b, payload.b_registers, payload.b_element, b);
    if (payload.sparse() && !expand(warp, payload, a) && warp.checks()) {
        warp.report(operation, FindingKind::invalid_operand, active,
                    "the sparsity metadata does not select two elements of a chunk in increasing order; "
                    ".sp::ordered_metadata needs the larger index in the upper two of every four bits");
    }
    const auto view = [&](const Codes& codes, MmaElement element) {
        return numerics::CodeView{.format = format_of(element),
                                  .codes = codes.data(),
                                  .outer_stride = static_cast<std::ptrdiff_t>(payload.k)};
    };
    const bool half = payload.sum == SumType::f16;
    CodedProduct product{.kind = payload.kind,
                         .a = view(a, payload.a_element),
                         .b = view(b, payload.b_element),
                         .m = rows,
                         .n = columns,
                         .k = payload.k,
                         .instruction_k = payload.k,
                         .accumulator = half ? numerics::Accumulator::f16 : numerics::Accumulator::f32};
    std::array<std::uint8_t, 4 * rows> scales_a, scales_b;
    if (payload.scales != 0) {
        scales_a = read_scales(warp, operation, active, payload.scale_a, payload.scales, rows, 2, 'a',
                               [](unsigned row, unsigned pair) { return 4 * (row % 8) + 2 * pair + row / 8; });
        scales_b = read_scales(warp, operation, active, payload.scale_b, payload.scales, columns, 4, 'b',
                               [](unsigned column, unsigned thread) { return 4 * column + thread; });
        product.scales = {
            .format = payload.scale_format, .per_row = payload.scales, .a = scales_a.data(), .b = scales_b.data()};
    }
    alignas(64) std::array<float, rows * columns> sums;
    const auto row_of = [&]<typename Value>(const std::vector<Ref>& registers) {
        return [&](unsigned index) { return warp.row<Value>(registers[index]); };
    };
    if (half) {
        payload.sums.gather_f16(row_of.operator()<std::uint32_t>(payload.c_registers), sums.data());
    } else {
        payload.sums.gather(row_of.operator()<float>(payload.c_registers), sums.data());
    }
    add_product(product, warp.cluster.options().numerics, sums.data(), columns);
    if (half) {
        payload.sums.scatter_f16(row_of.operator()<std::uint32_t>(payload.d_registers), sums.data(), active);
    } else {
        payload.sums.scatter(row_of.operator()<float>(payload.d_registers), sums.data(), active);
    }
    Statistics& statistics = warp.cluster.statistics;
    ++statistics.mma_issued;
    statistics.mma_flops += std::uint64_t{2} * rows * columns * payload.k;
    return Step::next;
}

// ---- decoding ----

MmaKind kind_named(const Decoder& decoder, std::string_view name)
{
    for (const MmaKind kind : {MmaKind::f8f6f4, MmaKind::mxf8f6f4, MmaKind::mxf4, MmaKind::mxf4nvf4}) {
        if (name == name_of(kind)) {
            return kind;
        }
    }
    decoder.fail(fmt::format("there is no .kind::{}: mma has f8f6f4, mxf8f6f4, mxf4 and mxf4nvf4", name));
}

std::optional<MmaElement> element_of(MmaKind kind, std::string_view name)
{
    for (const MmaElement element :
         {MmaElement::e4m3, MmaElement::e5m2, MmaElement::e2m3, MmaElement::e3m2, MmaElement::e2m1}) {
        if (name == name_of(element) && (!is_four_bit(kind) || element == MmaElement::e2m1)) {
            return element;
        }
    }
    return std::nullopt;
}

/// The four types, in the order of the text.
std::vector<std::string> take_types(Decoder& decoder)
{
    std::vector<std::string> types;
    for (const std::string& modifier : decoder.remaining()) {
        if (sum_type_named(modifier) || element_of(MmaKind::f8f6f4, modifier)) {
            types.push_back(modifier);
            decoder.take(modifier);
        }
    }
    return types;
}

void take_scales(Decoder& decoder, KindProduct& payload)
{
    const MmaKind kind = payload.kind;
    const bool scaled = decoder.take("block_scale");
    if (scaled != is_block_scaled(kind)) {
        decoder.fail(fmt::format(".kind::{} {} .block_scale", name_of(kind), scaled ? "has no" : "needs"));
    }
    if (!scaled) {
        return;
    }
    const std::string_view type = decoder.take_one_of({"ue8m0", "ue4m3"});
    const std::string_view size = decoder.take_one_of({"scale_vec::1X", "scale_vec::2X", "scale_vec::4X"});
    payload.scale_format = type == "ue4m3" ? numerics::Format::ue4m3 : numerics::Format::ue8m0;
    payload.scales = size.empty()              ? (kind == MmaKind::mxf8f6f4 ? 1
                                                  : kind == MmaKind::mxf4   ? 2
                                                                            : 0)
                     : size == "scale_vec::1X" ? 1
                     : size == "scale_vec::2X" ? 2
                                               : 4;
    if (payload.scales == 0) {
        decoder.fail(".kind::mxf4nvf4 needs .scale_vec::2X or .scale_vec::4X");
    }
    const unsigned needed = kind == MmaKind::mxf8f6f4 ? 1 : kind == MmaKind::mxf4 || type == "ue8m0" ? 2 : 4;
    const bool right_type = type == "ue8m0" || (type == "ue4m3" && kind == MmaKind::mxf4nvf4);
    if (!right_type || payload.scales != needed) {
        decoder.fail(fmt::format(".kind::{} has no .scale_vec::{}X with scale factors of '{}'", name_of(kind),
                                 payload.scales, type));
    }
}

/// A constant of the text, or none.
std::optional<std::int64_t> constant_of(const ptx::Operand& operand)
{
    if (operand.kind != ptx::Operand::Kind::integer) {
        return std::nullopt;
    }
    return operand.negated ? -operand.integer : operand.integer;
}

/// Reads the operands `index` and `index` + 1: the word, and {byte-id, thread-id}.
ScaleOperand read_scale(Decoder& decoder, std::size_t index, unsigned scales, unsigned threads, char which)
{
    const ptx::Operand& selectors = decoder.operand(index + 1);
    if (selectors.kind != ptx::Operand::Kind::vector || selectors.elements.size() != 2) {
        decoder.fail(fmt::format("the scale factors of {0} need the selectors {{byte-id-{0}, thread-id-{0}}}", which));
    }
    const std::optional<std::int64_t> byte = constant_of(selectors.elements[0]);
    const std::optional<std::int64_t> thread = constant_of(selectors.elements[1]);
    if (byte && (*byte < 0 || *byte > 3 || *byte % scales != 0)) {
        decoder.fail(fmt::format("byte-id-{} must be {} with .scale_vec::{}X", which,
                                 scales == 1   ? "0, 1, 2 or 3"
                                 : scales == 2 ? "0 or 2"
                                               : "0",
                                 scales));
    }
    if (thread && (*thread < 0 || *thread >= threads)) {
        decoder.fail(fmt::format("thread-id-{} must be less than {}", which, threads));
    }
    LaneMask lanes = all_lanes;
    if (thread) {  // of each four lanes, a pair or one
        const LaneMask quad = threads == 2 ? 0b11U << (2 * *thread) : 1U << *thread;
        lanes = 0x1111'1111U * quad;
    }
    const ptx::Operand& data = decoder.operand(index);
    const bool vector = decoder.is_vector(index);
    if (vector ? data.elements.size() != 1 : !decoder.is_register(index)) {
        decoder.fail(fmt::format("the scale factors of {} are in one 32-bit register", which));
    }
    return {.data = decoder.read_in_lanes(vector ? data.elements[0] : data, ptx::Type::b32, lanes),
            .byte = decoder.read(selectors.elements[0], ptx::Type::u16),
            .thread = decoder.read(selectors.elements[1], ptx::Type::u16)};
}

}  // namespace

bool has_specific_target(const Decoder& decoder)
{
    return decoder.target().ends_with('a') || decoder.target().ends_with('f');
}

void decode_mma_kind(Decoder& decoder, Operation& operation, std::string_view kind_name, bool sparse)
{
    auto& payload = decoder.emplace_payload<KindProduct>();
    const MmaKind kind = payload.kind = kind_named(decoder, kind_name);
    if (decoder.device().major != 12) {
        decoder.fail(fmt::format(".kind::{} exists on devices of compute capability 12.x only", kind_name));
    }
    const bool exact_target = sparse && is_four_bit(kind);
    if (!has_specific_target(decoder) || (exact_target && !decoder.target().ends_with('a'))) {
        decoder.fail(fmt::format(".kind::{}{} needs a target like sm_120a{}, not {}", kind_name,
                                 exact_target ? " with .sp" : "", exact_target ? "" : " or sm_120f", decoder.target()));
    }
    const MmaShape shape = take_mma_shape(decoder);
    if (!decoder.take("row") || !decoder.take("col")) {
        decoder.fail("needs the layouts of a and b, .row.col");
    }
    take_scales(decoder, payload);
    const std::vector<std::string> types = take_types(decoder);
    if (types.size() != 4) {
        decoder.fail("needs four types: those of d, a, b and c");
    }
    const std::optional<MmaElement> a = element_of(kind, types[1]), b = element_of(kind, types[2]);
    if (!a || !b) {
        decoder.fail(fmt::format(".kind::{} has no operands of .{} and .{}", kind_name, types[1], types[2]));
    }
    const std::optional<SumType> sum = sum_type_named(types[0]);
    if (types[0] != types[3] || (sum != SumType::f32 && (sum != SumType::f16 || kind != MmaKind::f8f6f4))) {
        decoder.fail(fmt::format(".kind::{} cannot have sums of .{} and .{}", kind_name, types[0], types[3]));
    }
    payload.a_element = *a;
    payload.b_element = *b;
    payload.sum = *sum;
    payload.k = (is_four_bit(kind) ? 64 : 32) * (sparse ? 2 : 1);
    if (shape != MmaShape{rows, columns, payload.k}) {
        decoder.fail(
            fmt::format("there is no shape {} for .kind::{}: it is .m16n8k{}", shape.name(), kind_name, payload.k));
    }

    const unsigned row_bytes = 32;  // of the stored elements
    payload.a = {.rows = rows, .chunks = row_bytes / 16, .pair = 2};
    payload.b = {.rows = columns, .chunks = (sparse ? 2 : 1) * row_bytes / 16};
    payload.sums = {.rows = rows, .columns = columns, .pair = 2, .packed = sum == SumType::f16};
    const ptx::Type sum_register = sum == SumType::f16 ? ptx::Type::b32 : ptx::Type::f32;
    expect_operands(decoder, 4 + (sparse ? 2U : 0U) + (payload.scales != 0 ? 4U : 0U));
    payload.d_registers = decoder.write_vector(0, sum_register);
    payload.a_registers = decoder.read_vector(1, ptx::Type::b32);
    payload.b_registers = decoder.read_vector(2, ptx::Type::b32);
    payload.c_registers = decoder.read_vector(3, sum_register);
    const auto require = [&](char name, std::size_t has, std::size_t needs) {
        if (has != needs) {
            decoder.fail(fmt::format("operand {} has {} registers; this shape and type need {}", name, has, needs));
        }
    };
    require('d', payload.d_registers.size(), payload.sums.registers());
    require('a', payload.a_registers.size(), payload.a.registers());
    require('b', payload.b_registers.size(), payload.b.registers());
    require('c', payload.c_registers.size(), payload.sums.registers());
    std::size_t next = 4;
    if (sparse) {
        payload.metadata = decoder.read(next, ptx::Type::b32);
        if (decoder.constant(next + 1) != 0) {
            decoder.fail("the sparsity selector must be 0 for this shape");
        }
        next += 2;
    }
    if (payload.scales != 0) {
        payload.scale_a = read_scale(decoder, next, payload.scales, 2, 'a');
        payload.scale_b = read_scale(decoder, next + 2, payload.scales, 4, 'b');
    }
    operation.execute = execute_kind_product;
}

}  // namespace tessera::emulator
