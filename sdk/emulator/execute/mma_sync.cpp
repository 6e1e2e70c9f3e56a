// mma.sync and mma.sp.sync (PTX ISA 9.7.14.5 and 9.7.14.6).

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "execute/warp_matrix.hpp"
#include "machine/cluster.hpp"
#include "machine/grid.hpp"
#include "numerics/float_ops.hpp"

namespace tessera::emulator {
namespace {

/// The shapes for each operand type, and the first compute capability that has them.
struct MmaForm {
    std::string_view types;  ///< types of A and B, as words
    MmaShape shape;
    unsigned capability;
    bool sparse = false;
};

constexpr std::array<MmaForm, 32> forms{{
    {"f16", {16, 8, 8}, 75},
    {"f16", {16, 8, 16}, 80},
    {"bf16", {16, 8, 8}, 80},
    {"bf16", {16, 8, 16}, 80},
    {"tf32", {16, 8, 4}, 80},
    {"tf32", {16, 8, 8}, 80},
    {"f64", {8, 8, 4}, 80},
    {"f64", {16, 8, 4}, 90},
    {"f64", {16, 8, 8}, 90},
    {"f64", {16, 8, 16}, 90},
    {"s8 u8", {8, 8, 16}, 75},
    {"s8 u8", {16, 8, 16}, 80},
    {"s8 u8", {16, 8, 32}, 80},
    {"s4 u4", {8, 8, 32}, 75},
    {"s4 u4", {16, 8, 32}, 80},
    {"s4 u4", {16, 8, 64}, 80},
    {"b1", {8, 8, 128}, 75},
    {"b1", {16, 8, 128}, 80},
    {"b1", {16, 8, 256}, 80},
    {"e4m3 e5m2", {16, 8, 16}, 89},
    {"e4m3 e5m2", {16, 8, 32}, 89},
    {"f16", {16, 8, 16}, 80, true},
    {"f16", {16, 8, 32}, 80, true},
    {"bf16", {16, 8, 16}, 80, true},
    {"bf16", {16, 8, 32}, 80, true},
    {"tf32", {16, 8, 8}, 80, true},
    {"tf32", {16, 8, 16}, 80, true},
    {"s8 u8", {16, 8, 32}, 80, true},
    {"s8 u8", {16, 8, 64}, 80, true},
    {"s4 u4", {16, 8, 64}, 80, true},
    {"s4 u4", {16, 8, 128}, 80, true},
    {"e4m3 e5m2", {16, 8, 64}, 89, true},
}};

bool has_word(std::string_view words, std::string_view word)
{
    while (!words.empty()) {
        const std::size_t end = words.find(' ');
        if (words.substr(0, end) == word) {
            return true;
        }
        words.remove_prefix(end == std::string_view::npos ? words.size() : end + 1);
    }
    return false;
}

/// mma.m8n8k4 with f16: four independent products, of lanes 4q..4q+3 and 16+4q..16+4q+3 each (PTX ISA 9.7.14.5.1).
struct QuadProduct final : Payload {
    SumType d_type = SumType::f32;
    bool a_columns = false, b_rows = false;  ///< layouts other than .row.col
    SumType c_type = SumType::f32;
    std::vector<Ref> a, b, c, d;
};

constexpr unsigned quad_extent = 8;  // M and N; K is 4

/// Row (of A or D) or column (of B) of `lane` in the product of its group of eight lanes.
constexpr unsigned quad_place(unsigned lane) { return lane % 4 + (lane < 16 ? 0 : 4); }

struct Place {
    unsigned row = 0, column = 0;
};
/// Place of element `index` of an f32 accumulator.
constexpr Place quad_f32_place(unsigned lane, unsigned index)
{
    return {(lane & 1U) + (index & 2U) + (lane < 16 ? 0 : 4), (index & 4U) + (lane & 2U) + (index & 1U)};
}

std::uint16_t half_of(Warp& warp, const std::vector<Ref>& registers, unsigned lane, unsigned index)
{
    return static_cast<std::uint16_t>(warp.row<std::uint32_t>(registers[index / 2])[lane] >> (16 * (index % 2)));
}

void gather_quad_sums(Warp& warp, const QuadProduct& payload, unsigned lane,
                      std::array<float, quad_extent * quad_extent>& sums)
{
    for (unsigned i = 0; i < quad_extent; ++i) {
        if (payload.c_type == SumType::f16) {
            sums[quad_place(lane) * quad_extent + i] = numerics::float_from_f16(half_of(warp, payload.c, lane, i));
        } else {
            const Place place = quad_f32_place(lane, i);
            sums[place.row * quad_extent + place.column] = warp.row<float>(payload.c[i])[lane];
        }
    }
}

void scatter_quad_sums(Warp& warp, const QuadProduct& payload, unsigned lane,
                       const std::array<float, quad_extent * quad_extent>& sums)
{
    for (unsigned i = 0; i < quad_extent; ++i) {
        if (payload.d_type == SumType::f16) {
            std::uint32_t& pair = warp.row<std::uint32_t>(payload.d[i / 2])[lane];
            const std::uint32_t half = numerics::f16_from_float(sums[quad_place(lane) * quad_extent + i]);
            pair = i % 2 == 0 ? half : pair | half << 16;
        } else {
            const Place place = quad_f32_place(lane, i);
            warp.row<float>(payload.d[i])[lane] = sums[place.row * quad_extent + place.column];
        }
    }
}

/// Only Volta has tensor cores of this shape. Later chips use f32 instructions: they add the products in the order of
/// K, and the accumulator last (bit by bit as on an H200).
void multiply_quad(const std::array<std::uint16_t, quad_extent * 4>& a,
                   const std::array<std::uint16_t, quad_extent * 4>& b,
                   std::array<float, quad_extent * quad_extent>& sums)
{
    for (unsigned row = 0; row < quad_extent; ++row) {
        for (unsigned column = 0; column < quad_extent; ++column) {
            float sum = 0;
            for (unsigned k = 0; k < 4; ++k) {
                sum = numerics::fma_rn(numerics::float_from_f16(a[row * 4 + k]),
                                       numerics::float_from_f16(b[column * 4 + k]), sum);
            }
            sums[row * quad_extent + column] = numerics::add_rn(sum, sums[row * quad_extent + column]);
        }
    }
}

Step execute_quad_product(Warp& warp, const Operation& operation, LaneMask active)
{
    if (!whole_warp(warp, operation, active)) {
        return Step::wait;
    }
    const auto& payload = operation.as<QuadProduct>();
    std::array<std::array<float, quad_extent * quad_extent>, 4> sums{};
    for (unsigned quad = 0; quad < 4; ++quad) {
        const LaneMask lanes = 0x000F'000FU << (4 * quad);
        std::array<std::uint16_t, quad_extent * 4> a{}, b{};
        for_each_lane(lanes, [&](unsigned lane) {
            const unsigned place = quad_place(lane), along = lane % 4, offset = lane < 16 ? 0 : 4;
            for (unsigned i = 0; i < 4; ++i) {
                const std::uint16_t a_value = half_of(warp, payload.a, lane, i);
                const std::uint16_t b_value = half_of(warp, payload.b, lane, i);
                (payload.a_columns ? a[(i + offset) * 4 + along] : a[place * 4 + i]) = a_value;
                (payload.b_rows ? b[(i + offset) * 4 + along] : b[place * 4 + i]) = b_value;
            }
            gather_quad_sums(warp, payload, lane, sums[quad]);
        });
        multiply_quad(a, b, sums[quad]);
    }
    for_each_lane(active, [&](unsigned lane) { scatter_quad_sums(warp, payload, lane, sums[lane % 16 / 4]); });
    ++warp.cluster.statistics.mma_issued;
    warp.cluster.statistics.mma_flops += std::uint64_t{4} * 2 * quad_extent * quad_extent * 4;
    return Step::next;
}

void decode_quad_product(Decoder& decoder, Operation& operation, bool a_columns, bool b_rows, SumType c_type,
                         SumType d_type)
{
    auto& payload = decoder.emplace_payload<QuadProduct>();
    payload.d_type = d_type;
    payload.a_columns = a_columns;
    payload.b_rows = b_rows;
    payload.c_type = c_type;
    const auto type = [](SumType sum) { return sum == SumType::f16 ? ptx::Type::b32 : ptx::Type::f32; };
    payload.d = decoder.write_vector(0, type(d_type));
    payload.a = decoder.read_vector(1, ptx::Type::b32);
    payload.b = decoder.read_vector(2, ptx::Type::b32);
    payload.c = decoder.read_vector(3, type(c_type));
    const auto registers = [](SumType sum) { return sum == SumType::f16 ? 4U : 8U; };
    if (payload.a.size() != 2 || payload.b.size() != 2 || payload.c.size() != registers(c_type) ||
        payload.d.size() != registers(d_type)) {
        decoder.fail("m8n8k4 with f16 needs 2 registers for a and b, and 4 (f16) or 8 (f32) for c and d");
    }
    operation.execute = execute_quad_product;
}

/// The type of sums for operands of `element`, if `name` is one that they can have.
std::optional<SumType> sum_for(Element element, std::string_view name)
{
    const std::optional<SumType> type = sum_type_named(name);
    if (!type) {
        return std::nullopt;
    }
    switch (element) {
        case Element::f16:
        case Element::e4m3:
        case Element::e5m2: return *type == SumType::f16 || *type == SumType::f32 ? type : std::nullopt;
        case Element::bf16:
        case Element::tf32: return *type == SumType::f32 ? type : std::nullopt;
        case Element::f64: return *type == SumType::f64 ? type : std::nullopt;
        default: return *type == SumType::s32 ? type : std::nullopt;
    }
}

void take_bit_operation(Decoder& decoder, Product& product)
{
    const std::string_view operation = decoder.take_one_of({"and", "xor"});
    if (operation.empty() || !decoder.take("popc")) {
        decoder.fail("single-bit operands need .and.popc or .xor.popc");
    }
    product.bits = operation == "and" ? numerics::BitOperation::bit_and : numerics::BitOperation::bit_xor;
    if (operation == "and" && decoder.device().capability() < 80) {
        decoder.fail(".and.popc needs a device of compute capability 8.0 or higher");
    }
}

void take_rounding(Decoder& decoder, Product& product)
{
    const std::string_view mode = decoder.take_one_of({"rn", "rz", "rm", "rp"});
    product.rounding = mode == "rz"   ? numerics::Rounding::toward_zero
                       : mode == "rm" ? numerics::Rounding::down
                       : mode == "rp" ? numerics::Rounding::up
                                      : numerics::Rounding::nearest_even;
}

/// Returns true if A and B are floats of 8 bits.
bool has_8_bit_operands(const Decoder& decoder)
{
    return std::ranges::count_if(decoder.remaining(), [](const std::string& modifier) {
               return modifier == "e4m3" || modifier == "e5m2";
           }) == 2;
}

/// .sp: reads operands 4 and 5.
void read_sparsity(Decoder& decoder, FragmentProduct& payload)
{
    payload.metadata = decoder.read(4, ptx::Type::b32);
    const std::optional<std::int64_t> selector = decoder.constant(5);
    const unsigned choices = sparse_selectors(payload.product.a, payload.product.k);
    if (!selector || *selector < 0 || *selector >= static_cast<std::int64_t>(choices)) {
        decoder.fail(fmt::format("the sparsity selector must be a constant from 0 to {} for this shape", choices - 1));
    }
    payload.selector = static_cast<unsigned>(*selector);
}

}  // namespace

void decode_mma(Decoder& decoder, Operation& operation)
{
    operation.kind = InstructionClass::tensor;
    const std::string_view sparsity = decoder.take_one_of({"sp", "sp::ordered_metadata"});
    const bool sparse = !sparsity.empty();
    const bool sync = decoder.take("sync");
    if (!decoder.take("aligned") || !sync) {
        decoder.fail("needs .sync.aligned");
    }
    decoder.mark_aligned();
    if (const auto kind = decoder.take_prefixed("kind::")) {
        if (sparsity == "sp") {
            decoder.fail(fmt::format(".kind::{} needs .sp::ordered_metadata, not .sp", *kind));
        }
        if (*kind != "f8f6f4" || !has_8_bit_operands(decoder)) {
            decode_mma_kind(decoder, operation, *kind, sparse);
            return;
        }
        // The same instruction as without .kind, and named so from 10.0 on.
        if (decoder.device().major < 10 || !has_specific_target(decoder)) {
            decoder.fail(fmt::format(".kind::f8f6f4 needs a target like sm_120a or sm_120f, not {}", decoder.target()));
        }
    }
    if (std::ranges::any_of(decoder.remaining(), [](const std::string& modifier) {
            return modifier == "e2m3" || modifier == "e3m2" || modifier == "e2m1";
        })) {
        decoder.fail("floats of 6 and 4 bits need .kind: f8f6f4, mxf8f6f4, mxf4 or mxf4nvf4");
    }
    const MmaShape shape = take_mma_shape(decoder);
    const std::string_view a_layout = decoder.take_one_of({"row", "col"});
    const std::string_view b_layout = decoder.take_one_of({"row", "col"});
    const std::vector<std::string> types = take_matrix_types(decoder);
    if (types.size() != 4) {
        decoder.fail("needs four types: those of d, a, b and c");
    }
    const std::optional<Element> a = element_named(types[1]), b = element_named(types[2]);
    if (!a || !b) {
        decoder.fail(fmt::format(".{} and .{} are not types of a and b", types[1], types[2]));
    }
    const std::optional<SumType> d_type = sum_for(*a, types[0]), c_type = sum_for(*a, types[3]);
    if (!d_type || !c_type) {
        decoder.fail(fmt::format("operands of .{} cannot have sums of .{} and .{}", types[1], types[0], types[3]));
    }
    if (b_layout.empty()) {
        decoder.fail("needs the layouts of a and b, .row.col");
    }
    if (shape == MmaShape{8, 8, 4} && *a == Element::f16 && *b == Element::f16 && !sparse) {
        if (*d_type == SumType::f16 && *c_type == SumType::f32) {
            decoder.fail("an f16 result needs an f16 accumulator");
        }
        decode_quad_product(decoder, operation, a_layout == "col", b_layout == "row", *c_type, *d_type);
        return;
    }
    if (a_layout != "row" || b_layout != "col") {
        decoder.fail(fmt::format("shape {} has the layouts .row.col only", shape.name()));
    }
    if (*d_type != *c_type) {
        decoder.fail("c and d must have the same type");
    }
    const auto form = std::find_if(forms.begin(), forms.end(), [&](const MmaForm& candidate) {
        return candidate.shape == shape && candidate.sparse == sparse && has_word(candidate.types, types[1]) &&
               has_word(candidate.types, types[2]);
    });
    if (form == forms.end()) {
        decoder.fail(fmt::format("there is no shape {} for .{} and .{}", shape.name(), types[1], types[2]));
    }
    if (sparse && form->capability == 89 && *d_type == SumType::f16 &&
        (decoder.device().major != 12 || !has_specific_target(decoder))) {
        decoder.fail("sparse 8-bit floats have sums of .f16 only with a target like sm_120a or sm_120f");
    }
    if (decoder.device().capability() < form->capability) {
        decoder.fail(fmt::format("{} with .{} needs a device of compute capability {}.{} or higher", shape.name(),
                                 types[1], form->capability / 10, form->capability % 10));
    }
    auto& payload = decoder.emplace_payload<FragmentProduct>();
    payload.product = {.a = *a,
                       .b = *b,
                       .sum = *d_type,
                       .m = shape.m,
                       .n = shape.n,
                       .k = shape.k,
                       .unit = warp_tensor_unit(decoder.device())};
    payload.c_type = *c_type;
    if (*a == Element::b1) {
        take_bit_operation(decoder, payload.product);
    } else if (*a == Element::f64) {
        take_rounding(decoder, payload.product);
    } else if (*d_type == SumType::s32) {
        payload.product.saturate = decoder.take("satfinite");
    }
    if (sparse) {
        read_sparsity(decoder, payload);
    }
    read_fragments(decoder, payload);
    if (payload.a_registers.size() != payload.a.registers() || payload.b_registers.size() != payload.b.registers()) {
        decoder.fail(fmt::format("a and b have {} and {} registers; this shape and type need {} and {}",
                                 payload.a_registers.size(), payload.b_registers.size(), payload.a.registers(),
                                 payload.b.registers()));
    }
    operation.execute = execute_fragment_product;
}

}  // namespace tessera::emulator
