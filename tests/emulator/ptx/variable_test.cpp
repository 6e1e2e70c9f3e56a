// Declarations of variables and their initial values.
#include <bit>

#include "snippets.hpp"

namespace tessera::emulator::ptx {
namespace {

std::vector<std::uint64_t> bits_of(const Variable& variable)
{
    std::vector<std::uint64_t> bits;
    for (const Variable::InitialValue& value : variable.initial) {
        CHECK(value.symbol.empty());
        bits.push_back(value.bits);
    }
    return bits;
}

using Bits = std::vector<std::uint64_t>;

}  // namespace

TEST_CASE("a plain variable")
{
    const Variable variable = parse_variable(".visible .global .align 16 .v4 .f32 x;");
    CHECK(variable.space == StateSpace::global);
    CHECK(variable.type == Type::f32);
    CHECK(variable.vector_width == 4);
    CHECK(variable.name == "x");
    CHECK(variable.alignment == 16);
    CHECK(variable.visible);
    CHECK(!variable.external);
    CHECK(!variable.weak);
    CHECK(!variable.common);
    CHECK(!variable.is_array);
    CHECK(!variable.count);
    CHECK(!variable.managed);
    CHECK(variable.initial.empty());
    CHECK(variable.size() == 16);
    CHECK(variable.location.line == 4);
}

TEST_CASE("arrays")
{
    const Variable variable = parse_variable(".weak .shared .b8 tile[4][3][0x10];");
    CHECK(variable.space == StateSpace::shared);
    CHECK(variable.weak);
    CHECK(variable.is_array);
    CHECK(variable.extents == std::vector<std::uint64_t>{4, 3, 16});
    CHECK(variable.size() == 192);

    const Variable dynamic = parse_variable(".extern .shared .align 1024 .b8 dynamic[];");
    CHECK(dynamic.external);
    CHECK(dynamic.is_array);
    CHECK(dynamic.extents == std::vector<std::uint64_t>{0});
    CHECK(dynamic.size() == 0);
    CHECK(dynamic.alignment == 1024);
}

TEST_CASE("one declaration of many variables")
{
    const Module module = parse_module(".const .u16 a = 1, b[2] = {2, 3},\n c;");
    REQUIRE(module.variables.size() == 3);
    for (const Variable& variable : module.variables) {
        CHECK(variable.space == StateSpace::constant);
        CHECK(variable.type == Type::u16);
    }
    CHECK(bits_of(module.variables[0]) == Bits{1});
    CHECK(bits_of(module.variables[1]) == Bits{2, 3});
    CHECK(bits_of(module.variables[2]).empty());
    CHECK(module.variables[2].location.line == 5);
}

TEST_CASE("attributes and opaque types")
{
    CHECK(parse_variable(".global .attribute(.managed) .align 4 .u32 x;").managed);
    CHECK(parse_variable(".global .align 4 .attribute(.unified(0x1, 2), .managed) .u32 x;").managed);
    CHECK(!parse_variable(".global .attribute(.unified(1, 2)) .u32 x;").managed);
    CHECK(parse_variable(".common .global .b32 x;").common);
    CHECK(parse_variable(".global .samplerref s = { filter_mode = linear };").type == Type::samplerref);
    CHECK(parse_variable(".tex .u32 t;").type == Type::texref);
}

TEST_CASE("initial integers are truncated to the type")
{
    CHECK(bits_of(parse_variable(".global .u8 x = 300;")) == Bits{44});
    CHECK(bits_of(parse_variable(".global .s16 x = -2;")) == Bits{0xFFFE});
    CHECK(bits_of(parse_variable(".global .b32 x = 1 << 31 | 0x1ffffffffU;")) == Bits{0xFFFFFFFF});
    CHECK(bits_of(parse_variable(".global .u64 x = 18446744073709551615;")) == Bits{UINT64_MAX});
    CHECK(bits_of(parse_variable(".global .s64 x = -9223372036854775808;")) == Bits{std::uint64_t{1} << 63});
}

TEST_CASE("initial reals have the type's bits")
{
    CHECK(bits_of(parse_variable(".global .f32 x = 0.1;")) == Bits{std::bit_cast<std::uint32_t>(0.1F)});
    CHECK(bits_of(parse_variable(".global .f64 x = 0f3FC00000;")) == Bits{std::bit_cast<std::uint64_t>(1.5)});
    CHECK(bits_of(parse_variable(".global .f32 x = 0d3FF8000000000000;")) == Bits{0x3FC00000});
    CHECK(bits_of(parse_variable(".global .b32 x = 1.5;")) == Bits{0x3FC00000});
    CHECK(bits_of(parse_variable(".global .b64 x = 1.5;")) == Bits{0x3FF8000000000000});
    CHECK(bits_of(parse_variable(".global .b64 x = 0f3FC00000;")) == Bits{0x3FC00000});
    CHECK(
        bits_of(parse_variable(".global .f64 x[3] = {-1.5, 1.5 + 2 * 3., .25e1};")) ==
        Bits{std::bit_cast<std::uint64_t>(-1.5), std::bit_cast<std::uint64_t>(7.5), std::bit_cast<std::uint64_t>(2.5)});
    CHECK(bits_of(parse_variable(".global .f32 x = 0fFFC00001;")) == Bits{0xFFC00001});
}

TEST_CASE("initial values of arrays and vectors are flat, in the order of the elements")
{
    CHECK(bits_of(parse_variable(".global .u8 x[2][3] = {{1, 2, 3}, {4, 5, 6}};")) == Bits{1, 2, 3, 4, 5, 6});
    CHECK(bits_of(parse_variable(".global .v2 .u8 x[2] = {{1, 2}, {3, 4}};")) == Bits{1, 2, 3, 4});
    CHECK(bits_of(parse_variable(".global .v2 .u8 x = {1, 2};")) == Bits{1, 2});
    CHECK(bits_of(parse_variable(".global .u8 x[4] = {1, 2};")) == Bits{1, 2});
    CHECK(bits_of(parse_variable(".global .u8 x[2][2] = {{1, 2}, {3}};")) == Bits{1, 2, 3});
    CHECK(bits_of(parse_variable(".global .u8 x[4] = {};")).empty());
}

TEST_CASE("initial values determine the extent of []")
{
    const Variable flat = parse_variable(".global .u16 x[] = {1, 2, 3};");
    CHECK(flat.extents == std::vector<std::uint64_t>{3});
    CHECK(flat.size() == 6);
    const Variable rows = parse_variable(".global .u16 x[][2] = {{1, 2}, {3, 4}, {5}};");
    CHECK(rows.extents == std::vector<std::uint64_t>{3, 2});
    CHECK(bits_of(rows) == Bits{1, 2, 3, 4, 5});
}

TEST_CASE("addresses as initial values")
{
    const Variable table = parse_variable(".global .u64 x[6] = {f, y + 4*2, generic(y), generic(y)+16, 0, y+16-8};");
    REQUIRE(table.initial.size() == 6);
    CHECK(table.initial[0].symbol == "f");
    CHECK(table.initial[0].bits == 0);
    CHECK(!table.initial[0].generic);
    CHECK(table.initial[1].symbol == "y");
    CHECK(table.initial[1].bits == 8);
    CHECK(table.initial[2].symbol == "y");
    CHECK(table.initial[2].generic);
    CHECK(table.initial[3].generic);
    CHECK(table.initial[3].bits == 16);
    CHECK(table.initial[4].symbol.empty());
    CHECK(table.initial[5].bits == 8);

    const Variable bytes =
        parse_variable(".global .b8 x[4] = {0xFF(y), 0xFF00(generic(y)), 255, 0xFF0000000000(y+1)};");
    REQUIRE(bytes.initial.size() == 4);
    CHECK(bytes.initial[0].masked);
    CHECK(bytes.initial[0].mask_shift == 0);
    CHECK(bytes.initial[0].symbol == "y");
    CHECK(bytes.initial[1].mask_shift == 8);
    CHECK(bytes.initial[1].generic);
    CHECK(!bytes.initial[2].masked);
    CHECK(bytes.initial[2].bits == 255);
    CHECK(bytes.initial[3].mask_shift == 40);
    CHECK(bytes.initial[3].bits == 1);
}

TEST_CASE("a variable may be called generic")
{
    CHECK(parse_variable(".global .u64 x = generic;").initial.at(0).symbol == "generic");
}

TEST_CASE("declarations in a body")
{
    const Block body = parse_body(R"(
        .reg .pred p, q;
        .reg .b32 %r<12>, %s;
        .reg .v2 .f32 %v<3>;
        .local .align 16 .b8 __local_depot0[32];
        .param .align 8 .b8 retval0[16];
        .shared .b64 barrier;
        .global .u32 counter = 3;)");
    REQUIRE(body.statements.size() == 9);
    CHECK(statement<Variable>(body, 0).name == "p");
    CHECK(statement<Variable>(body, 0).type == Type::pred);
    CHECK(statement<Variable>(body, 0).space == StateSpace::reg);
    CHECK(statement<Variable>(body, 1).name == "q");
    CHECK(!statement<Variable>(body, 1).count);
    CHECK(statement<Variable>(body, 2).name == "%r");
    CHECK(statement<Variable>(body, 2).count == 12);
    CHECK(statement<Variable>(body, 3).name == "%s");
    CHECK(!statement<Variable>(body, 3).count);
    CHECK(statement<Variable>(body, 4).vector_width == 2);
    CHECK(statement<Variable>(body, 4).count == 3);
    CHECK(statement<Variable>(body, 5).space == StateSpace::local);
    CHECK(statement<Variable>(body, 5).size() == 32);
    CHECK(statement<Variable>(body, 5).location.line == 9);
    CHECK(statement<Variable>(body, 6).space == StateSpace::param);
    CHECK(statement<Variable>(body, 7).space == StateSpace::shared);
    CHECK(bits_of(statement<Variable>(body, 8)) == Bits{3});
}

}  // namespace tessera::emulator::ptx
