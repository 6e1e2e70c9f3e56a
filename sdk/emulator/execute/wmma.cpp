// wmma.load, wmma.mma, wmma.store (PTX ISA 9.7.14.4). The layout of a fragment in registers is up to the machine. Here
// it is the layout of mma.sync, tile by tile, whatever the layout in memory. Vectors of f16 operands have more
// registers than this needs; the rest repeats it.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "execute/warp_matrix.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"
#include "machine/memory_access.hpp"

namespace tessera::emulator {
namespace {

enum class Part : std::uint8_t { a, b, accumulator };

constexpr std::array<MmaShape, 3> common_shapes{{{16, 16, 16}, {8, 32, 16}, {32, 8, 16}}};

/// Returns true if wmma has this shape for elements of this type.
bool has_shape(Element element, const MmaShape& shape)
{
    switch (element) {
        case Element::tf32: return shape == MmaShape{16, 16, 8};
        case Element::f64: return shape == MmaShape{8, 8, 4};
        case Element::s4:
        case Element::u4: return shape == MmaShape{8, 8, 32};
        case Element::b1: return shape == MmaShape{8, 8, 128};
        case Element::f16:
        case Element::bf16:
        case Element::s8:
        case Element::u8: return std::find(common_shapes.begin(), common_shapes.end(), shape) != common_shapes.end();
        default: return false;
    }
}

/// Lowest compute capability that supports these operands.
unsigned needed_capability(Element element)
{
    switch (element) {
        case Element::bf16:
        case Element::tf32:
        case Element::f64: return 80;
        default: return 70;
    }
}

OperandFragment operand_fragment(Element element, unsigned rows, unsigned k, bool is_a)
{
    const unsigned lane_bytes = element == Element::f64 ? 8 : 4;
    return {.rows = rows,
            .chunks = k * bits_of(element) / (lane_bytes * 32),
            .lane_bytes = lane_bytes,
            .pair = is_a && rows >= 16 ? 2U : 1U};
}

/// Number of registers in the instruction's vector: always 8 for f16 operands.
unsigned operand_registers(Element element, const OperandFragment& fragment)
{
    return element == Element::f16 ? 8 : fragment.registers();
}

/// wmma.load and wmma.store: `lines` runs of contiguous elements, `stride` elements apart.
struct FragmentTransfer final : Payload {
    AddressRef address;
    Space space = Space::generic;
    Ref stride = no_row;  ///< no_row: dense
    Part part = Part::a;
    bool transposed = false;  ///< lines run across the fragment's own lines
    unsigned element_bits = 16;
    unsigned rows = 0, columns = 0;  ///< in the fragment's own form, whose columns are contiguous
    OperandFragment operand;
    AccumulatorFragment accumulator;
    std::vector<Ref> registers;
    [[nodiscard]] unsigned lines() const noexcept { return transposed ? columns : rows; }
    [[nodiscard]] unsigned line_elements() const noexcept { return transposed ? rows : columns; }
};

constexpr std::size_t matrix_bytes = 2048;  // 16 x 16 f32 and 32 x 8 f32 are 1024

/// Calls body(bytes in memory, offset in the dense copy of all lines, count) for pieces of the matrix. `stored`: what a
/// store writes, in the order of that copy.
template <typename Body>
void for_each_piece(Warp& warp, const Operation& operation, LaneMask active, const FragmentTransfer& transfer,
                    Direction direction, const char* what, const std::byte* stored, Body&& body)
{
    const auto lane = static_cast<unsigned>(std::countr_zero(active));
    const std::uint64_t base = warp.address(transfer.address, lane);
    const std::uint32_t stride =
        transfer.stride == no_row ? transfer.line_elements() : warp.row<std::uint32_t>(transfer.stride)[lane];
    if (warp.checks()) {
        for_each_lane(active, [&](unsigned other) {
            if (warp.address(transfer.address, other) != base ||
                (transfer.stride != no_row && warp.row<std::uint32_t>(transfer.stride)[other] != stride)) {
                warp.report(
                    operation, FindingKind::invalid_operand, LaneMask{1} << other,
                    fmt::format(
                        "lanes {} and {} give different addresses or strides; all lanes of the warp must give the same",
                        other, lane));
            }
        });
    }
    const unsigned line_bytes = transfer.line_elements() * transfer.element_bits / 8;
    MemoryAccess access{.space = transfer.space, .direction = direction, .what = what};
    const unsigned alignment = std::max(1U, transfer.element_bits / 8);
    constexpr unsigned piece = 16;
    for (unsigned line = 0; line < transfer.lines(); ++line) {
        const std::uint64_t address = base + std::uint64_t{line} * stride * transfer.element_bits / 8;
        for (unsigned byte = 0; byte < line_bytes; byte += piece) {
            const unsigned count = std::min(piece, line_bytes - byte);
            access.stored = stored == nullptr ? nullptr : stored + line * line_bytes + byte;
            body(locate(warp, operation, access, address + byte, count, alignment, lane), line * line_bytes + byte,
                 count);
        }
    }
}

/// Transposes between the lines in memory and the fragment's own form. Whole bytes only: sub-byte fragments have one
/// layout.
void transpose(const FragmentTransfer& transfer, const std::byte* from, std::byte* to, bool to_memory)
{
    const std::size_t size = transfer.element_bits / 8;
    for (std::size_t row = 0; row < transfer.rows; ++row) {
        for (std::size_t column = 0; column < transfer.columns; ++column) {
            const std::size_t own = (row * transfer.columns + column) * size;
            const std::size_t memory = (column * transfer.rows + row) * size;
            std::memcpy(to + (to_memory ? memory : own), from + (to_memory ? own : memory), size);
        }
    }
}

void registers_from_matrix(Warp& warp, const FragmentTransfer& transfer, const std::byte* matrix, LaneMask active)
{
    const auto row_of = [&](unsigned index) { return warp.row<std::uint32_t>(transfer.registers[index]); };
    if (transfer.part != Part::accumulator) {
        const unsigned own = transfer.operand.registers();
        for (std::size_t first = 0; first < transfer.registers.size(); first += own) {
            transfer.operand.scatter(warp, std::span(transfer.registers).subspan(first, own), matrix, active);
        }
    } else if (transfer.accumulator.packed) {
        // The pairs of a register are neighbours in a row, so 16-bit codes are moved unchanged.
        transfer.accumulator.for_each_tile([&](unsigned tile, unsigned row, unsigned column) {
            std::uint32_t* pairs = row_of(tile);
            for_each_lane(active, [&](unsigned lane) {
                std::memcpy(&pairs[lane],
                            matrix + ((row + lane / 4) * std::size_t{transfer.columns} + column + 2 * (lane % 4)) * 2,
                            4);
            });
        });
    } else if (transfer.element_bits == 64) {
        transfer.accumulator.scatter<double>(
            [&](unsigned index) { return warp.row<double>(transfer.registers[index]); },
            reinterpret_cast<const double*>(matrix), active);
    } else {
        transfer.accumulator.scatter<std::uint32_t>(row_of, reinterpret_cast<const std::uint32_t*>(matrix), active);
    }
}

void matrix_from_registers(Warp& warp, const FragmentTransfer& transfer, std::byte* matrix)
{
    const auto row_of = [&](unsigned index) { return warp.row<std::uint32_t>(transfer.registers[index]); };
    if (transfer.accumulator.packed) {
        transfer.accumulator.for_each_tile([&](unsigned tile, unsigned row, unsigned column) {
            const std::uint32_t* pairs = row_of(tile);
            for (unsigned lane = 0; lane < warp_size; ++lane) {
                std::memcpy(matrix + ((row + lane / 4) * std::size_t{transfer.columns} + column + 2 * (lane % 4)) * 2,
                            &pairs[lane], 4);
            }
        });
    } else if (transfer.element_bits == 64) {
        transfer.accumulator.gather<double>([&](unsigned index) { return warp.row<double>(transfer.registers[index]); },
                                            reinterpret_cast<double*>(matrix));
    } else {
        transfer.accumulator.gather<std::uint32_t>(row_of, reinterpret_cast<std::uint32_t*>(matrix));
    }
}

Step execute_load(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    const auto& transfer = operation.as<FragmentTransfer>();
    alignas(64) std::array<std::byte, matrix_bytes> lines;
    for_each_piece(warp, operation, active, transfer, Direction::read, "wmma.load", nullptr,
                   [&](const std::byte* bytes, std::size_t offset, std::size_t count) {
                       std::memcpy(lines.data() + offset, bytes, count);
                   });
    if (!transfer.transposed) {
        registers_from_matrix(warp, transfer, lines.data(), active);
    } else {
        alignas(64) std::array<std::byte, matrix_bytes> matrix;
        transpose(transfer, lines.data(), matrix.data(), false);
        registers_from_matrix(warp, transfer, matrix.data(), active);
    }
    return Step::next;
}

Step execute_store(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    const auto& transfer = operation.as<FragmentTransfer>();
    alignas(64) std::array<std::byte, matrix_bytes> matrix, lines;
    matrix_from_registers(warp, transfer, matrix.data());
    if (transfer.transposed) {
        transpose(transfer, matrix.data(), lines.data(), true);
    }
    const std::byte* from = transfer.transposed ? lines.data() : matrix.data();
    for_each_piece(
        warp, operation, active, transfer, Direction::write, "wmma.store", from,
        [&](std::byte* bytes, std::size_t offset, std::size_t count) { std::memcpy(bytes, from + offset, count); });
    warp.cluster.progress();
    return Step::next;
}

void read_address(Decoder& decoder, std::size_t operand, FragmentTransfer& transfer)
{
    transfer.address = decoder.address(operand);
    if (transfer.address.anchor != AddressRef::Anchor::absolute) {
        decoder.fail("the address must be one of global or shared memory, not of a parameter or a local variable");
    }
}

void take_space(Decoder& decoder, FragmentTransfer& transfer)
{
    const std::string_view space = decoder.take_one_of({"global", "shared", "shared::cta"});
    transfer.space = space.empty() ? Space::generic : space == "global" ? Space::global : Space::shared;
}

/// Reads shape, layout and type of a load or store of `part`, and sets the fragment's form.
void read_transfer(Decoder& decoder, FragmentTransfer& transfer, Part part)
{
    const std::string_view layout = decoder.take_one_of({"row", "col"});
    if (layout.empty()) {
        decoder.fail("needs the layout of the matrix in memory, .row or .col");
    }
    const MmaShape shape = take_mma_shape(decoder);
    take_space(decoder, transfer);
    const std::vector<std::string> types = take_matrix_types(decoder);
    if (types.size() != 1) {
        decoder.fail("needs one type");
    }
    transfer.part = part;
    const bool row_major = layout == "row";
    if (part == Part::accumulator) {
        const std::optional<SumType> type = sum_type_named(types[0]);
        if (!type) {
            decoder.fail(fmt::format(".{} is not a type of an accumulator", types[0]));
        }
        transfer.element_bits = *type == SumType::f64 ? 64 : *type == SumType::f16 ? 16 : 32;
        transfer.rows = shape.m;
        transfer.columns = shape.n;
        transfer.transposed = !row_major;
        transfer.accumulator = {
            .rows = shape.m, .columns = shape.n, .pair = shape.m >= 16 ? 2U : 1U, .packed = *type == SumType::f16};
        const std::array<Element, 11> elements{Element::f16, Element::bf16, Element::tf32, Element::s8,
                                               Element::u8,  Element::s4,   Element::u4,   Element::b1,
                                               Element::f64, Element::e4m3, Element::e5m2};
        if (std::none_of(elements.begin(), elements.end(),
                         [&](Element element) { return has_shape(element, shape); })) {
            decoder.fail(fmt::format("there is no shape {}", shape.name()));
        }
        return;
    }
    const std::optional<Element> element = element_named(types[0]);
    if (!element || !has_shape(*element, shape)) {
        decoder.fail(fmt::format("there is no shape {} for .{}", shape.name(), types[0]));
    }
    if (decoder.device().capability() < needed_capability(*element)) {
        decoder.fail(fmt::format(".{} needs a device of compute capability 8.0 or higher", types[0]));
    }
    const bool is_a = part == Part::a;
    transfer.element_bits = bits_of(*element);
    transfer.rows = is_a ? shape.m : shape.n;
    transfer.columns = shape.k;
    transfer.transposed = row_major != is_a;
    if (transfer.transposed && transfer.element_bits < 8) {
        decoder.fail(fmt::format(".{} needs .row for a and .col for b", types[0]));
    }
    transfer.operand = operand_fragment(*element, transfer.rows, shape.k, is_a);
}

void check_registers(Decoder& decoder, const FragmentTransfer& transfer, bool is_f16)
{
    const std::size_t needed = transfer.part == Part::accumulator
                                   ? transfer.accumulator.registers()
                                   : operand_registers(is_f16 ? Element::f16 : Element::s8, transfer.operand);
    if (transfer.registers.size() != needed) {
        decoder.fail(fmt::format("has a vector of {} registers; this shape and type need {}", transfer.registers.size(),
                                 needed));
    }
}

ptx::Type register_type(const FragmentTransfer& transfer)
{
    return transfer.element_bits == 64 ? ptx::Type::f64 : ptx::Type::b32;
}

void decode_load(Decoder& decoder, Operation& operation)
{
    const std::string_view part = decoder.take_one_of({"a", "b", "c"});
    if (part.empty()) {
        decoder.fail("needs .a, .b or .c after wmma.load");
    }
    auto& transfer = decoder.emplace_payload<FragmentTransfer>();
    const std::vector<std::string> modifiers = decoder.remaining();
    const bool is_f16 = std::find(modifiers.begin(), modifiers.end(), "f16") != modifiers.end();
    read_transfer(decoder, transfer, part == "a" ? Part::a : part == "b" ? Part::b : Part::accumulator);
    transfer.registers = decoder.write_vector(0, register_type(transfer));
    read_address(decoder, 1, transfer);
    if (decoder.operands() > 2) {
        transfer.stride = decoder.read(2, ptx::Type::u32);
    }
    check_registers(decoder, transfer, is_f16);
    operation.execute = execute_load;
    decoder.effects().access({.space = transfer.space});
    operation.kind = InstructionClass::memory;
}

void decode_store(Decoder& decoder, Operation& operation)
{
    if (!decoder.take("d")) {
        decoder.fail("needs .d after wmma.store");
    }
    auto& transfer = decoder.emplace_payload<FragmentTransfer>();
    read_transfer(decoder, transfer, Part::accumulator);
    read_address(decoder, 0, transfer);
    transfer.registers = decoder.read_vector(1, register_type(transfer));
    if (decoder.operands() > 2) {
        transfer.stride = decoder.read(2, ptx::Type::u32);
    }
    check_registers(decoder, transfer, false);
    operation.execute = execute_store;
    decoder.effects().access({.space = transfer.space, .direction = Direction::write});
    operation.kind = InstructionClass::memory;
}

/// Types of a, b, c and d in the order of the text: all four, or for f16 operands only those of d and c.
void take_types(Decoder& decoder, FragmentProduct& payload)
{
    std::vector<std::string> types = take_matrix_types(decoder);
    if (types.size() == 2) {
        types = {types[0], "f16", "f16", types[1]};
    }
    if (types.size() != 4) {
        decoder.fail("needs the types of d, a, b and c, or, for f16 operands, those of d and c");
    }
    const std::optional<SumType> d = sum_type_named(types[0]), c = sum_type_named(types[3]);
    const std::optional<Element> a = element_named(types[1]), b = element_named(types[2]);
    if (!a || !b || !c || !d || *a != *b) {
        decoder.fail(fmt::format("the types .{}.{}.{}.{} cannot be combined", types[0], types[1], types[2], types[3]));
    }
    const auto valid = [&](SumType type) {
        switch (*a) {
            case Element::f16: return type == SumType::f16 || type == SumType::f32;
            case Element::bf16:
            case Element::tf32: return type == SumType::f32;
            case Element::f64: return type == SumType::f64;
            default: return type == SumType::s32;
        }
    };
    if (!valid(*c) || !valid(*d)) {
        decoder.fail(fmt::format("operands of .{} cannot have sums of .{} and .{}", types[1], types[0], types[3]));
    }
    payload.product.a = *a;
    payload.product.b = *b;
    payload.product.sum = *d;
    payload.c_type = *c;
}

void decode_product(Decoder& decoder, Operation& operation)
{
    auto& payload = decoder.emplace_payload<FragmentProduct>();
    Product& product = payload.product;
    const std::string_view bits = decoder.take_one_of({"and", "xor"});
    if (!bits.empty() && !decoder.take("popc")) {
        decoder.fail("needs .popc after .and or .xor");
    }
    product.bits = bits == "and" ? numerics::BitOperation::bit_and : numerics::BitOperation::bit_xor;
    const std::string_view a_layout = decoder.take_one_of({"row", "col"});
    const std::string_view b_layout = decoder.take_one_of({"row", "col"});
    if (b_layout.empty()) {
        decoder.fail("needs the layouts of a and b, each .row or .col");
    }
    const MmaShape shape = take_mma_shape(decoder);
    take_types(decoder, payload);
    if (!has_shape(product.a, shape)) {
        decoder.fail(fmt::format("there is no shape {} for .{}", shape.name(), name_of(product.a)));
    }
    if (bits.empty() == (product.a == Element::b1)) {
        decoder.fail("single-bit operands need .and.popc or .xor.popc, and other operands take neither");
    }
    if (bits_of(product.a) < 8 && (a_layout != "row" || b_layout != "col")) {
        decoder.fail(fmt::format(".{} has the layouts .row.col only", name_of(product.a)));
    }
    if (decoder.device().capability() < needed_capability(product.a)) {
        decoder.fail(fmt::format(".{} needs a device of compute capability 8.0 or higher", name_of(product.a)));
    }
    product.m = shape.m;
    product.n = shape.n;
    product.k = shape.k;
    product.unit = warp_tensor_unit(decoder.device());
    product.instruction_k = product.a == Element::tf32 ? 4 : 0;  // two steps, like an H200
    if (product.a == Element::f64) {
        const std::string_view mode = decoder.take_one_of({"rn", "rz", "rm", "rp"});
        product.rounding = mode == "rz"   ? numerics::Rounding::toward_zero
                           : mode == "rm" ? numerics::Rounding::down
                           : mode == "rp" ? numerics::Rounding::up
                                          : numerics::Rounding::nearest_even;
    } else {
        product.saturate = decoder.take("satfinite");
    }
    read_fragments(decoder, payload);
    if (payload.a_registers.size() != operand_registers(product.a, payload.a) ||
        payload.b_registers.size() != operand_registers(product.b, payload.b)) {
        decoder.fail(fmt::format("a and b have {} and {} registers; this shape and type need {} and {}",
                                 payload.a_registers.size(), payload.b_registers.size(),
                                 operand_registers(product.a, payload.a), operand_registers(product.b, payload.b)));
    }
    operation.execute = execute_fragment_product;
    operation.kind = InstructionClass::tensor;
}

}  // namespace

void decode_wmma(Decoder& decoder, Operation& operation)
{
    const std::string_view what = decoder.take_one_of({"load", "mma", "store"});
    const bool sync = decoder.take("sync");
    if (!decoder.take("aligned") || !sync) {
        decoder.fail("needs .sync.aligned");
    }
    decoder.mark_aligned();
    if (what == "load") {
        decode_load(decoder, operation);
    } else if (what == "store") {
        decode_store(decoder, operation);
    } else if (what == "mma") {
        decode_product(decoder, operation);
    } else {
        decoder.fail("needs .load, .mma or .store");
    }
}

}  // namespace tessera::emulator
