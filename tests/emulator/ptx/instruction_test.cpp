// Instructions and their operands.
#include <bit>

#include "print.hpp"
#include "snippets.hpp"

namespace tessera::emulator::ptx {
namespace {

using Kind = Operand::Kind;
using Words = std::vector<std::string>;

}  // namespace

TEST_CASE("opcode, modifiers and text")
{
    const Instruction instruction = parse_instruction("@!%p1 mad.lo.s32\t%r1, %r2,\n    %r3, /* ; } */ -4 ; // tail");
    CHECK(instruction.opcode == "mad");
    CHECK(instruction.modifiers == Words{"lo", "s32"});
    CHECK(instruction.guard == "%p1");
    CHECK(instruction.guard_negated);
    CHECK(instruction.operands.size() == 4);
    CHECK(instruction.text == "@!%p1 mad.lo.s32 %r1, %r2, %r3, -4 ;");
    CHECK(instruction.location.line == 5);
}

TEST_CASE("white space and comments between all tokens")
{
    const Instruction instruction =
        parse_instruction("@ ! p /* a */ add // b\n .u32 a , b , [ c + 4 ] , { d , e } , p | q ;");
    CHECK(instruction.guard == "p");
    CHECK(instruction.guard_negated);
    CHECK(print(instruction) == "@!p add.u32 a, b, [c+4], {d, e}, p|q;");
    CHECK(instruction.text == "@ ! p add .u32 a , b , [ c + 4 ] , { d , e } , p | q ;");
}

TEST_CASE("modifiers with double colons, and modifiers that begin with digits")
{
    CHECK(parse_instruction("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.cta_group::2;")
              .modifiers == Words{"async", "bulk", "tensor", "2d", "shared::cluster", "global",
                                  "mbarrier::complete_tx::bytes", "cta_group::2"});
    CHECK(parse_instruction("tcgen05.ld.sync.aligned.16x64b.x128.pack::16b.b32;").modifiers ==
          Words{"ld", "sync", "aligned", "16x64b", "x128", "pack::16b", "b32"});
    CHECK(
        parse_instruction("tcgen05.mma.cta_group::1.kind::mxf4.block_scale.scale_vec::2X.32x32b.1X.b32x2;").modifiers ==
        Words{"mma", "cta_group::1", "kind::mxf4", "block_scale", "scale_vec::2X", "32x32b", "1X", "b32x2"});
    CHECK(parse_instruction("tcgen05.cp.cta_group::1.64x128b.warpx2::02_13.b8x16.b6x16_p32;").modifiers ==
          Words{"cp", "cta_group::1", "64x128b", "warpx2::02_13", "b8x16", "b6x16_p32"});
    CHECK(parse_instruction("ld.global.L1::no_allocate.L2::128B.v4.f32;").modifiers ==
          Words{"global", "L1::no_allocate", "L2::128B", "v4", "f32"});
}

TEST_CASE("instructions without operands")
{
    const Instruction instruction = parse_instruction("tcgen05.wait::ld.sync.aligned;");
    CHECK(instruction.operands.empty());
    CHECK(instruction.guard.empty());
    CHECK(instruction.modifiers == Words{"wait::ld", "sync", "aligned"});
    CHECK(parse_instruction("ret;").modifiers.empty());
}

TEST_CASE("names")
{
    Operand operand = parse_operand_of("%r17");
    CHECK(operand.kind == Kind::identifier);
    CHECK(operand.name == "%r17");
    CHECK(operand.component.empty());
    CHECK(operand.second.empty());
    CHECK(operand.integer == 0);
    CHECK(!operand.negated);

    operand = parse_operand_of("%tid.x");
    CHECK(operand.name == "%tid");
    CHECK(operand.component == "x");

    operand = parse_operand_of("%r3.b0");
    CHECK(operand.component == "b0");

    operand = parse_operand_of("table+4*2-16");
    CHECK(operand.kind == Kind::identifier);
    CHECK(operand.name == "table");
    CHECK(operand.integer == -8);

    for (const char* const negated : {"!%p1", "! %p1", "-%p1"}) {
        operand = parse_operand_of(negated);
        CHECK(operand.kind == Kind::identifier);
        CHECK(operand.name == "%p1");
        CHECK(operand.negated);
    }
}

TEST_CASE("sinks and pairs of destinations")
{
    Operand operand = parse_operand_of("_");
    CHECK(operand.kind == Kind::sink);
    CHECK(operand.second.empty());

    operand = parse_operand_of("%r1|%p1");
    CHECK(operand.kind == Kind::identifier);
    CHECK(operand.name == "%r1");
    CHECK(operand.second == "%p1");

    operand = parse_operand_of("_|p");
    CHECK(operand.kind == Kind::sink);
    CHECK(operand.second == "p");

    CHECK(parse_operand_of("p | _").second == "_");
}

TEST_CASE("constants")
{
    Operand operand = parse_operand_of("-5");
    CHECK(operand.kind == Kind::integer);
    CHECK(operand.integer == -5);
    CHECK(!operand.negated);

    operand = parse_operand_of("0f3F800000");
    CHECK(operand.kind == Kind::real);
    CHECK(operand.real_type == Type::f32);
    CHECK(operand.bits == 0x3F800000);

    operand = parse_operand_of("0F7FC00001");
    CHECK(operand.bits == 0x7FC00001);

    operand = parse_operand_of("-0f3F800000");
    CHECK(operand.real_type == Type::f32);
    CHECK(operand.bits == 0xBF800000);

    operand = parse_operand_of("0d7ff4000000000001");
    CHECK(operand.real_type == Type::f64);
    CHECK(operand.bits == 0x7FF4000000000001);

    for (const char* const half : {"0.5", ".5", "5e-1", "0.05E+1", "1.0/2", "50.e-2"}) {
        CAPTURE(half);
        operand = parse_operand_of(half);
        CHECK(operand.kind == Kind::real);
        CHECK(operand.real_type == Type::f64);
        CHECK(operand.bits == std::bit_cast<std::uint64_t>(0.5));
    }
}

TEST_CASE("addresses")
{
    const auto check = [](const char* text, const std::string& base, std::int64_t offset) {
        CAPTURE(text);
        const Operand operand = parse_operand_of(text);
        CHECK(operand.kind == Kind::address);
        CHECK(operand.name == base);
        CHECK(operand.integer == offset);
        CHECK(operand.elements.empty());
    };
    check("[%rd1]", "%rd1", 0);
    check("[%rd1+4]", "%rd1", 4);
    check("[ %rd1 + 0 ]", "%rd1", 0);
    check("[%rd1+-4]", "%rd1", -4);
    check("[%rd1-4]", "%rd1", -4);
    check("[symbol+4+0x10]", "symbol", 20);
    check("[symbol+(4*2)]", "symbol", 8);
    check("[symbol+WARP_SZ*4]", "symbol", 128);
    check("[1024]", "", 1024);
    check("[4*4]", "", 16);
}

TEST_CASE("vectors")
{
    const Operand operand = parse_operand_of("{%r1, _, 3, 0f3F800000, %tid.x}");
    CHECK(operand.kind == Kind::vector);
    REQUIRE(operand.elements.size() == 5);
    CHECK(operand.elements[0].name == "%r1");
    CHECK(operand.elements[1].kind == Kind::sink);
    CHECK(operand.elements[2].integer == 3);
    CHECK(operand.elements[3].kind == Kind::real);
    CHECK(operand.elements[4].component == "x");
}

TEST_CASE("operands as long as those of wgmma and tcgen05")
{
    std::string list = "%f0";
    for (int i = 1; i < 128; ++i) {
        list += fmt::format(", %f{}", i);
    }
    const Instruction instruction = parse_instruction(
        fmt::format("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {{{}}}, %rd1, %rd2, p, 1, -1, 0, 1;", list));
    REQUIRE(instruction.operands.size() == 8);
    REQUIRE(instruction.operands[0].elements.size() == 128);
    CHECK(instruction.operands[0].elements[127].name == "%f127");
    CHECK(instruction.operands[5].integer == -1);
    CHECK(instruction.modifiers[3] == "m64n256k16");
}

TEST_CASE("lists in brackets")
{
    const Instruction instruction =
        parse_instruction("cp.async.bulk.tensor.2d [%r1], [%rd1, {%r2, -8}], [%r4+8], {1, 2};");
    REQUIRE(instruction.operands.size() == 4);
    CHECK(instruction.operands[0].kind == Kind::address);
    const Operand& box = instruction.operands[1];
    CHECK(box.kind == Kind::bracket);
    REQUIRE(box.elements.size() == 2);
    CHECK(box.elements[0].kind == Kind::identifier);
    CHECK(box.elements[0].name == "%rd1");
    CHECK(box.elements[1].kind == Kind::vector);
    REQUIRE(box.elements[1].elements.size() == 2);
    CHECK(box.elements[1].elements[1].integer == -8);
    CHECK(instruction.operands[2].integer == 8);
    CHECK(instruction.operands[3].kind == Kind::vector);
    CHECK(parse_operand_of("[texture, sampler, {%f1, %f2}]").elements.size() == 3);
}

TEST_CASE("calls")
{
    Instruction call = parse_instruction("call.uni \n(\nretval0\n), \nf, \n(\nparam0, \nparam1\n);");
    CHECK(call.modifiers == Words{"uni"});
    CHECK(call.text == "call.uni ( retval0 ), f, ( param0, param1 );");
    REQUIRE(call.operands.size() == 3);
    CHECK(call.operands[0].kind == Kind::vector);
    CHECK(call.operands[0].elements.at(0).name == "retval0");
    CHECK(call.operands[1].kind == Kind::identifier);
    CHECK(call.operands[1].name == "f");
    CHECK(call.operands[2].kind == Kind::vector);
    CHECK(call.operands[2].elements.size() == 2);

    call = parse_instruction("call (_), %rd1, (%r1, (1+2)*3), prototype_0;");
    REQUIRE(call.operands.size() == 4);
    CHECK(call.operands[0].elements.at(0).kind == Kind::sink);
    CHECK(call.operands[2].elements.at(1).integer == 9);
    CHECK(call.operands[3].name == "prototype_0");

    call = parse_instruction("call f;");
    REQUIRE(call.operands.size() == 1);
    CHECK(call.operands[0].kind == Kind::identifier);

    call = parse_instruction("call %rd1, (), p;");
    REQUIRE(call.operands.size() == 3);
    CHECK(call.operands[1].kind == Kind::vector);
    CHECK(call.operands[1].elements.empty());
}

TEST_CASE("operands of every kind print unchanged")
{
    for (const char* const text :
         {"shfl.sync.bfly.b32 %r1|%p1, %r2, 31, -1;", "elect.sync _|p, -1;", "setp.eq.and.u32 p|_, a, 4, !q;",
          "mov.b64 {a, _}, %rd1;", "vmad.s32.s32.s32 a, !b, c.b1, 5;", "ld.global.v2.b64 {a, b}, [x+16];",
          "call (r), f, (a, 5), proto;", "call f, ();", "fma.rn.f64 d, 0d3FF0000000000000, e, 0fBF800000;",
          "cp.async.bulk.tensor.3d [a], [m, {b, 0, 1}], [c+8];", "st.local.u32 [16], %tid.y;", "mov.u64 d, table+8;"}) {
        CHECK(print(parse_instruction(text)) == text);
    }
}

}  // namespace tessera::emulator::ptx
