// ldmatrix, stmatrix, movmatrix (PTX ISA 9.7.14.5.15 to .17), and the table of the warp-level matrix instructions.

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <string_view>

#include "execute/fragment.hpp"
#include "execute/warp_matrix.hpp"
#include "machine/cluster.hpp"
#include "machine/memory_access.hpp"
#include "program/decoder.hpp"

namespace tessera::emulator {
namespace {

constexpr unsigned row_bytes = 16;
using Row = std::array<std::uint8_t, row_bytes>;

/// Layout of a matrix row in memory and in registers.
enum class RowFormat : std::uint8_t { plain, six_bit, four_bit };

struct MatrixTransfer final : Payload {
    AddressRef address;
    Space space = Space::generic;
    unsigned rows = 0;  ///< of all matrices; lanes 0.. give their addresses
    RowFormat format = RowFormat::plain;
    std::vector<Ref> registers;
};

/// Expands a row of 16 elements of 6 or 4 bits (PTX ISA "optional decompression"), each to the low bits of a byte. In
/// memory, padding follows the packed bits.
Row expand(const Row& packed, unsigned bits)
{
    Row row{};
    for (unsigned i = 0; i < row_bytes; ++i) {
        const unsigned bit = i * bits;
        const unsigned pair = packed[bit / 8] | (bit / 8 + 1 < row_bytes ? unsigned{packed[bit / 8 + 1]} << 8U : 0U);
        row[i] = static_cast<std::uint8_t>((pair >> (bit % 8)) & ((1U << bits) - 1U));
    }
    return row;
}

std::array<Row, warp_size> load_rows(Warp& warp, const Operation& operation, LaneMask active,
                                     const MatrixTransfer& transfer)
{
    std::array<Row, warp_size> rows{};
    const MemoryAccess access{.space = transfer.space, .direction = Direction::read, .what = "ldmatrix"};
    for (unsigned lane = 0; lane < transfer.rows; ++lane) {
        if ((active >> lane & 1U) == 0) {
            continue;
        }
        const std::byte* bytes =
            locate(warp, operation, access, warp.address(transfer.address, lane), row_bytes, row_bytes, lane);
        std::memcpy(rows[lane].data(), bytes, row_bytes);
        warp.cluster.statistics.shared_read_bytes += row_bytes;
        if (transfer.format != RowFormat::plain) {
            rows[lane] = expand(rows[lane], transfer.format == RowFormat::six_bit ? 6 : 4);
        }
    }
    return rows;
}

void store_rows(Warp& warp, const Operation& operation, LaneMask active, const MatrixTransfer& transfer,
                const std::array<Row, warp_size>& rows)
{
    MemoryAccess access{.space = transfer.space, .direction = Direction::write, .what = "stmatrix"};
    for (unsigned lane = 0; lane < transfer.rows; ++lane) {
        if ((active >> lane & 1U) != 0) {
            access.stored = rows[lane].data();
            std::byte* bytes =
                locate(warp, operation, access, warp.address(transfer.address, lane), row_bytes, row_bytes, lane);
            std::memcpy(bytes, rows[lane].data(), row_bytes);
            warp.cluster.statistics.shared_write_bytes += row_bytes;
        }
    }
    warp.cluster.progress();
}

// Where the bytes of a lane's register are in the rows. Each calls body(byte of the register, row, byte in the row).

/// Not transposed: four neighbouring lanes hold a row.
struct Straight {
    static constexpr unsigned registers_per_matrix = 1, rows_per_matrix = 8;
    template <typename Body>
    static void bytes(unsigned lane, unsigned, Body&& body)
    {
        for (unsigned b = 0; b < 4; ++b) {
            body(b, lane / 4, 4 * (lane % 4) + b);
        }
    }
};
/// 8 x 8 of 16 bits, transposed: four neighbouring lanes hold a column.
struct Transposed16 {
    static constexpr unsigned registers_per_matrix = 1, rows_per_matrix = 8;
    template <typename Body>
    static void bytes(unsigned lane, unsigned, Body&& body)
    {
        for (unsigned b = 0; b < 4; ++b) {
            body(b, 2 * (lane % 4) + b / 2, 2 * (lane / 4) + b % 2);
        }
    }
};
/// ldmatrix.m16n16.trans: 16 x 16 of 8 bits. Each register has four rows of one column, like the operands of mma. (CuTe's
/// traits of the instruction show another order: its copy permutes the bytes that it has loaded.)
struct Transposed8Load {
    static constexpr unsigned registers_per_matrix = 2, rows_per_matrix = 16;
    template <typename Body>
    static void bytes(unsigned lane, unsigned register_index, Body&& body)
    {
        for (unsigned b = 0; b < 4; ++b) {
            body(b, 4 * (lane % 4) + b, lane / 4 + 8 * register_index);
        }
    }
};
/// stmatrix.m16n8.trans: 16 x 8 of 8 bits becomes 8 rows of 16 bytes.
struct Transposed8Store {
    static constexpr unsigned rows_per_matrix = 8;
    template <typename Body>
    static void bytes(unsigned lane, unsigned, Body&& body)
    {
        for (unsigned b = 0; b < 4; ++b) {
            body(b, 2 * (lane % 4) + b % 2, lane / 4 + 8 * (b / 2));
        }
    }
};

template <typename Layout>
Step load_matrices(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    const auto& transfer = operation.as<MatrixTransfer>();
    const std::array<Row, warp_size> rows = load_rows(warp, operation, active, transfer);
    for (unsigned index = 0; index < transfer.registers.size(); ++index) {
        const unsigned first = index / Layout::registers_per_matrix * Layout::rows_per_matrix;
        auto* to = warp.row<std::uint32_t>(transfer.registers[index]);
        for_each_lane(active, [&](unsigned lane) {
            std::uint32_t value = 0;
            Layout::bytes(lane, index % Layout::registers_per_matrix, [&](unsigned b, unsigned row, unsigned byte) {
                value |= std::uint32_t{rows[first + row][byte]} << (8 * b);
            });
            to[lane] = value;
        });
    }
    return Step::next;
}

template <typename Layout>
Step store_matrices(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    const auto& transfer = operation.as<MatrixTransfer>();
    std::array<Row, warp_size> rows{};
    for (unsigned index = 0; index < transfer.registers.size(); ++index) {
        const unsigned first = index * Layout::rows_per_matrix;
        const auto* from = warp.row<std::uint32_t>(transfer.registers[index]);
        for (unsigned lane = 0; lane < warp_size; ++lane) {
            Layout::bytes(lane, 0, [&](unsigned b, unsigned row, unsigned byte) {
                rows[first + row][byte] = static_cast<std::uint8_t>(from[lane] >> (8 * b));
            });
        }
    }
    store_rows(warp, operation, active, transfer, rows);
    return Step::next;
}

/// The number of .x1, .x2 or .x4.
unsigned take_count(Decoder& decoder)
{
    const std::string_view count = decoder.take_one_of({"x1", "x2", "x4"});
    if (count.empty()) {
        decoder.fail("needs .x1, .x2 or .x4");
    }
    return count == "x1" ? 1 : count == "x2" ? 2 : 4;
}

void take_address(Decoder& decoder, std::size_t operand, MatrixTransfer& transfer)
{
    transfer.space = decoder.take_one_of({"shared", "shared::cta"}).empty() ? Space::generic : Space::shared;
    transfer.address = decoder.address(operand);
    if (transfer.address.anchor != AddressRef::Anchor::absolute) {
        decoder.fail("the address must be one of shared memory, not of a parameter or a local variable");
    }
}

void require_sync_aligned(Decoder& decoder)
{
    const bool sync = decoder.take("sync");
    if (!decoder.take("aligned") || !sync) {
        decoder.fail("needs .sync.aligned");
    }
    decoder.mark_aligned();
}

void require_registers(Decoder& decoder, const MatrixTransfer& transfer, std::size_t expected)
{
    if (transfer.registers.size() != expected) {
        decoder.fail(
            fmt::format("has a vector of {} registers; this form takes {}", transfer.registers.size(), expected));
    }
}

void decode_ldmatrix(Decoder& decoder, Operation& operation)
{
    require_sync_aligned(decoder);
    auto& transfer = decoder.emplace_payload<MatrixTransfer>();
    const std::string_view shape = decoder.take_one_of({"m8n8", "m16n16", "m8n16"});
    const unsigned count = take_count(decoder);
    const bool transposed = decoder.take("trans");
    take_address(decoder, 1, transfer);
    decoder.effects().access({.space = transfer.space});
    transfer.registers = decoder.write_vector(0, ptx::Type::b32);
    if (shape == "m8n8") {
        if (!decoder.take("b16")) {
            decoder.fail(".m8n8 needs the type .b16");
        }
        transfer.rows = 8 * count;
        require_registers(decoder, transfer, count);
        operation.execute = transposed ? load_matrices<Transposed16> : load_matrices<Straight>;
    } else {
        if (decoder.device().capability() < 100) {
            decoder.fail(fmt::format(".{} needs a device of compute capability 10.0 or higher", shape));
        }
        const bool expanding = decoder.take("b8x16");
        const std::string_view packed = decoder.take_one_of({"b6x16_p32", "b4x16_p64"});
        if (expanding != !packed.empty()) {
            decoder.fail(".b8x16 needs .b6x16_p32 or .b4x16_p64");
        }
        transfer.format = packed.empty()          ? RowFormat::plain
                          : packed == "b6x16_p32" ? RowFormat::six_bit
                                                  : RowFormat::four_bit;
        if (!expanding && (shape != "m16n16" || !decoder.take("b8"))) {
            decoder.fail(".m8n16 needs .b8x16.b6x16_p32 or .b8x16.b4x16_p64, .m16n16 one of these or .b8");
        }
        if (shape == "m16n16") {
            if (!transposed || count == 4) {
                decoder.fail(".m16n16 needs .trans and .x1 or .x2");
            }
            transfer.rows = 16 * count;
            require_registers(decoder, transfer, std::size_t{2} * count);
            operation.execute = load_matrices<Transposed8Load>;
        } else {
            if (transposed) {
                decoder.fail(".m8n16 has no .trans");
            }
            transfer.rows = 8 * count;
            require_registers(decoder, transfer, count);
            operation.execute = load_matrices<Straight>;
        }
    }
    operation.kind = InstructionClass::memory;
}

void decode_stmatrix(Decoder& decoder, Operation& operation)
{
    require_sync_aligned(decoder);
    if (decoder.device().capability() < 90) {
        decoder.fail("needs a device of compute capability 9.0 or higher");
    }
    auto& transfer = decoder.emplace_payload<MatrixTransfer>();
    const std::string_view shape = decoder.take_one_of({"m8n8", "m16n8"});
    const unsigned count = take_count(decoder);
    const bool transposed = decoder.take("trans");
    take_address(decoder, 0, transfer);
    decoder.effects().access({.space = transfer.space, .direction = Direction::write});
    transfer.registers = decoder.read_vector(1, ptx::Type::b32);
    transfer.rows = 8 * count;
    require_registers(decoder, transfer, count);
    if (shape == "m16n8") {
        if (decoder.device().capability() < 100 || !transposed || !decoder.take("b8")) {
            decoder.fail(".m16n8 needs .trans, the type .b8, and a device of compute capability 10.0 or higher");
        }
        operation.execute = store_matrices<Transposed8Store>;
    } else {
        if (shape.empty() || !decoder.take("b16")) {
            decoder.fail("needs .m8n8 with .b16 or .m16n8.trans with .b8");
        }
        operation.execute = transposed ? store_matrices<Transposed16> : store_matrices<Straight>;
    }
    operation.kind = InstructionClass::memory;
}

Step execute_movmatrix(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    std::array<std::array<std::uint16_t, 8>, 8> matrix{};
    const auto* from = warp.row<std::uint32_t>(operation.operand[1]);
    for (unsigned lane = 0; lane < warp_size; ++lane) {
        matrix[lane / 4][2 * (lane % 4)] = static_cast<std::uint16_t>(from[lane]);
        matrix[lane / 4][2 * (lane % 4) + 1] = static_cast<std::uint16_t>(from[lane] >> 16);
    }
    auto* to = warp.row<std::uint32_t>(operation.operand[0]);
    for_each_lane(active, [&](unsigned lane) {
        const unsigned row = 2 * (lane % 4);
        to[lane] = matrix[row][lane / 4] | (std::uint32_t{matrix[row + 1][lane / 4]} << 16);
    });
    return Step::next;
}

void decode_movmatrix(Decoder& decoder, Operation& operation)
{
    require_sync_aligned(decoder);
    if (!decoder.take("m8n8") || !decoder.take("trans") || !decoder.take("b16")) {
        decoder.fail("the only form is movmatrix.sync.aligned.m8n8.trans.b16");
    }
    operation.operand[0] = decoder.write(0, ptx::Type::b32);
    operation.operand[1] = decoder.read(1, ptx::Type::b32);
    operation.execute = execute_movmatrix;
    operation.kind = InstructionClass::shuffle;
}

constexpr std::array<InstructionEntry, 5> entries{{{"ldmatrix", decode_ldmatrix},
                                                   {"stmatrix", decode_stmatrix},
                                                   {"movmatrix", decode_movmatrix},
                                                   {"mma", decode_mma},
                                                   {"wmma", decode_wmma}}};

}  // namespace

std::span<const InstructionEntry> matrix_instructions() { return entries; }

}  // namespace tessera::emulator
