// The parser's errors for text that is not PTX: the sentence, the line and its text.
#include "snippets.hpp"

namespace tessera::emulator::ptx {

TEST_CASE("an error names the line, what was found and the line's text")
{
    const std::string text = fmt::format("{}.entry k() {{\n  mov.u32 %r1, 1;\n\tadd.s32 %r1 %r2;\n}}", header);
    try {
        (void)parse(text);
        FAIL("accepted");
    } catch (const ParseError& error) {
        CHECK(std::string(error.what()) ==
              "PTX line 6: expected ',' or ';' after an operand, found '%r2': add.s32 %r1 %r2;");
        CHECK(error.location().line == 6);
    }
}

TEST_CASE("tokens")
{
    CHECK(body_error("mov a, #;") == "PTX line 5: unexpected character '#': mov a, #;");
    CHECK(body_error("mov a, \x01\xff;") == "PTX line 5: unexpected character '?': mov a, ??;");
    CHECK(body_error("mov\ta, $;") == "PTX line 5: unexpected character '$': mov a, $;");
    CHECK(body_error("mov . a;") == "PTX line 5: expected a name after '.': mov . a;");
    CHECK(body_error("mov a, 12abc;") == "PTX line 5: '12abc' is not a number: mov a, 12abc;");
    CHECK(body_error("mov a, 089;") == "PTX line 5: '089' is not a number: mov a, 089;");
    CHECK(body_error("mov a, 0x;") == "PTX line 5: '0x' is not a number: mov a, 0x;");
    CHECK(body_error("mov a, 0b2;") == "PTX line 5: '0b2' is not a number: mov a, 0b2;");
    CHECK(body_error("mov a, 5u;") == "PTX line 5: '5u' is not a number: mov a, 5u;");
    CHECK(body_error("mov a, 1e;") == "PTX line 5: '1e' is not a number: mov a, 1e;");
    CHECK(body_error("mov a, .5x;") == "PTX line 5: '.5x' is not a number: mov a, .5x;");
    CHECK(body_error("mov a, 1e999;") == "PTX line 5: '1e999' is outside of the range of f64: mov a, 1e999;");
    CHECK(body_error("mov a, 0f3F8;") == "PTX line 5: '0f3F8' has 8 hexadecimal digits, found 3: mov a, 0f3F8;");
    CHECK(body_error("mov a, 0d3FF00000;") ==
          "PTX line 5: '0d3FF00000' has 16 hexadecimal digits, found 8: mov a, 0d3FF00000;");
    CHECK(body_error("mov a, 0f3F8000000;") == "PTX line 5: '0f3F8000000' is not a number: mov a, 0f3F8000000;");
    CHECK(body_error("mov a, 18446744073709551616;") ==
          "PTX line 5: '18446744073709551616' does not fit into 64 bits: mov a, 18446744073709551616;");
    CHECK(body_error("/* no end") == "PTX line 5: the comment that begins here has no end: /* no end");
    CHECK(body_error(".pragma \"no end\n;") == "PTX line 5: the string that begins here has no end: .pragma \"no end");
    using namespace std::string_view_literals;
    CHECK(error_of(".version 9.0\0.target sm_80"sv) ==
          "PTX line 1: unexpected character '?': .version 9.0?.target sm_80");
}

TEST_CASE("a module's frame")
{
    CHECK(error_of("") ==
          "PTX line 1: expected the directive .version, with which PTX begins, found the end of the text: ");
    CHECK(error_of("\x7f"
                   "ELF") == "PTX line 1: unexpected character '?': ?ELF");
    CHECK(error_of("\n.target sm_80") ==
          "PTX line 2: expected the directive .version, with which PTX begins, found '.target': .target sm_80");
    CHECK(error_of(".version 9") == "PTX line 1: expected a version such as 9.0 after .version, found '9': .version 9");
    CHECK(error_of(".version 9.x") == "PTX line 1: '9.x' is not a number: .version 9.x");
    CHECK(error_of(".version 99999999999.0") ==
          "PTX line 1: expected a version such as 9.0 after .version, found '99999999999.0': .version 99999999999.0");
    CHECK(error_of(".version 9.0") ==
          "PTX line 1: .target with the architecture, such as .target sm_100a, is missing: .version 9.0");
    CHECK(error_of(".version 9.0\n.entry k() { ret; }") ==
          "PTX line 2: .target with the architecture, such as .target sm_100a, is missing: .entry k() { ret; }");
    CHECK(error_of(".version 9.0 .target ;") ==
          "PTX line 1: expected an architecture such as sm_100a after .target, found ';': .version 9.0 .target ;");
    CHECK(error_of(".version 9.0 .target sm_80,") ==
          "PTX line 1: expected an option of .target, found the end of the text: .version 9.0 .target sm_80,");
    CHECK(module_error(".address_size 63") == "PTX line 4: an address has 32 or 64 bits, not 63: .address_size 63");
    CHECK(module_error(".address_size x") ==
          "PTX line 4: expected 32 or 64 after .address_size, found 'x': .address_size x");
    CHECK(module_error("ret;") == "PTX line 4: expected a directive, found 'ret': ret;");
    CHECK(module_error(".visible ;") == "PTX line 4: expected a directive, found ';': .visible ;");
    CHECK(module_error(".foo x;") ==
          "PTX line 4: '.foo' is not a directive that is allowed outside of a function: .foo x;");
    CHECK(module_error(".reg .b32 x;") == "PTX line 4: '.reg' is not allowed outside of a function: .reg .b32 x;");
    CHECK(module_error(".param .b32 x;") ==
          "PTX line 4: '.param' is not allowed outside of a function: .param .b32 x;");
    CHECK(module_error(".local .b32 x;") ==
          "PTX line 4: '.local' is not allowed outside of a function: .local .b32 x;");
    CHECK(module_error(".file x") == "PTX line 4: expected the number of a .file, found 'x': .file x");
    CHECK(module_error(".file 1 x") == "PTX line 4: expected the path of a .file, found 'x': .file 1 x");
    CHECK(module_error(".file 1 \"x\", y") ==
          "PTX line 4: expected the time or size of a .file, found 'y': .file 1 \"x\", y");
    CHECK(module_error(".file 4294967296 \"x\"") ==
          "PTX line 4: the number of a .file is 4294967296, but at most 4294967295 is allowed: .file 4294967296 \"x\"");
    CHECK(module_error(".section x {}") == "PTX line 4: expected the name of a .section, found 'x': .section x {}");
    CHECK(module_error(".section .x ;") == "PTX line 4: expected '{', found ';': .section .x ;");
    CHECK(module_error(".section .x {\n\n{}") == "PTX line 4: the '{' on this line has no '}': .section .x {");
    CHECK(module_error(".alias a;") == "PTX line 4: expected ',' between the names of an .alias, found ';': .alias a;");
    CHECK(module_error(".alias 1, 2;") == "PTX line 4: expected the new name of an .alias, found '1': .alias 1, 2;");
    CHECK(module_error(".alias a, 2;") ==
          "PTX line 4: expected the function that an .alias names, found '2': .alias a, 2;");
    CHECK(module_error(".alias a, b") ==
          "PTX line 4: expected ';' after .alias, found the end of the text: .alias a, b");
    CHECK(module_error(".pragma x;") == "PTX line 4: expected a string after .pragma, found 'x': .pragma x;");
    CHECK(module_error(".pragma \"x\"") ==
          "PTX line 4: expected ';' after .pragma, found the end of the text: .pragma \"x\"");
}

TEST_CASE("declarations")
{
    CHECK(module_error(".global x;") == "PTX line 4: expected a type such as .b32, found 'x': .global x;");
    CHECK(module_error(".global .b32;") == "PTX line 4: expected the name of a variable, found ';': .global .b32;");
    CHECK(module_error(".global .b32 .u32 x;") == "PTX line 4: a second type, .u32, after .b32: .global .b32 .u32 x;");
    CHECK(module_error(".global .b33 x;") == "PTX line 4: '.b33' has no meaning in a declaration: .global .b33 x;");
    CHECK(module_error(".global .v3 .b32 x;") ==
          "PTX line 4: '.v3' has no meaning in a declaration: .global .v3 .b32 x;");
    CHECK(module_error(".global .ptr .b32 x;") ==
          "PTX line 4: '.ptr' has no meaning in a declaration: .global .ptr .b32 x;");
    CHECK(module_error(".global .b32 x") ==
          "PTX line 4: expected ';' after a declaration, found the end of the text: .global .b32 x");
    CHECK(module_error(".global .align 3 .b32 x;") ==
          "PTX line 4: an alignment of 3 bytes is not a power of two: .global .align 3 .b32 x;");
    CHECK(module_error(".global .align 0 .b32 x;") ==
          "PTX line 4: an alignment of 0 bytes is not a power of two: .global .align 0 .b32 x;");
    CHECK(module_error(".global .align 4294967296 .b32 x;") ==
          "PTX line 4: the number of bytes of .align is 4294967296, but at most 1073741824 is allowed: "
          ".global .align 4294967296 .b32 x;");
    CHECK(module_error(".global .b32 x[2][];") ==
          "PTX line 4: expected the extent of an array, found ']': .global .b32 x[2][];");
    CHECK(module_error(".global .b32 x[-1];") ==
          "PTX line 4: expected the extent of an array, found '-': .global .b32 x[-1];");
    CHECK(module_error(".global .b32 x[2;") ==
          "PTX line 4: expected ']' after the extent of an array, found ';': .global .b32 x[2;");
    CHECK(module_error(".global .b32 x[4294967296][4294967296];") ==
          "PTX line 4: 'x' has more than 2^48 bytes: .global .b32 x[4294967296][4294967296];");
    CHECK(module_error(".global .b32 x[18446744073709551615];") ==
          "PTX line 4: the extent of an array is 18446744073709551615, but at most 281474976710656 is allowed: "
          ".global .b32 x[18446744073709551615];");
    CHECK(module_error(".shared .b32 x<4>;") ==
          "PTX line 4: only registers can be declared as x<count>: declare an array or each variable: .shared .b32 "
          "x<4>;");
    CHECK(body_error(".reg .b32 %r[4];") ==
          "PTX line 5: registers cannot be an array: write %r<count>: .reg .b32 %r[4];");
    CHECK(body_error(".reg .b32 %r<n>;") == "PTX line 5: expected the count of registers, found 'n': .reg .b32 %r<n>;");
    CHECK(body_error(".reg .b32 %r<4;") ==
          "PTX line 5: expected '>' after the count of registers, found ';': .reg .b32 %r<4;");
    CHECK(
        body_error(".reg .b32 %r<4294967295>;") ==
        "PTX line 5: the count of registers is 4294967295, but at most 4194304 is allowed: .reg .b32 %r<4294967295>;");
    CHECK(module_error(".global .attribute .b32 x;") ==
          "PTX line 4: expected '(' after .attribute, found '.b32': .global .attribute .b32 x;");
    CHECK(module_error(".global .attribute(.cold) .b32 x;") ==
          "PTX line 4: expected an attribute: .managed or .unified, found '.cold': .global .attribute(.cold) .b32 x;");
    CHECK(module_error(".global .attribute(.managed .b32 x;") ==
          "PTX line 4: expected ')' after the attributes, found '.b32': .global .attribute(.managed .b32 x;");
    CHECK(module_error(".global .attribute(.unified(1)) .b32 x;") ==
          "PTX line 4: expected ',' between the halves of the identifier, found ')': "
          ".global .attribute(.unified(1)) .b32 x;");
}

TEST_CASE("initial values")
{
    CHECK(module_error(".shared .b32 x = 1;") ==
          "PTX line 4: 'x' cannot have an initial value: only .global and .const variables can: .shared .b32 x = 1;");
    CHECK(module_error(".global .f16 x = 1.0;") ==
          "PTX line 4: 'x' of type .f16 cannot have an initial value: .global .f16 x = 1.0;");
    CHECK(module_error(".global .u32 x = 1.0;") ==
          "PTX line 4: a real number cannot be the initial value of 'x', which has type .u32: .global .u32 x = 1.0;");
    CHECK(module_error(".global .b16 x = 1.0;") ==
          "PTX line 4: a real number cannot be the initial value of 'x', which has type .b16: .global .b16 x = 1.0;");
    CHECK(module_error(".global .f32 x = 1;") ==
          "PTX line 4: an integer cannot be the initial value of 'x', which has type .f32: .global .f32 x = 1;");
    CHECK(module_error(".global .f64 x = y;") ==
          "PTX line 4: an address cannot be the initial value of 'x', which has type .f64: .global .f64 x = y;");
    CHECK(module_error(".global .b8 x = y;") ==
          "PTX line 4: an address cannot be the initial value of 'x', which has type .b8: .global .b8 x = y;");
    CHECK(module_error(".global .f32 x = 0xFF(y);") ==
          "PTX line 4: a byte of an address cannot be the initial value of 'x', which has type .f32: "
          ".global .f32 x = 0xFF(y);");
    CHECK(module_error(".global .b8 x = 0xFE(y);") ==
          "PTX line 4: the mask 0xFE does not select one byte of an address, as 0xFF00 does: .global .b8 x = 0xFE(y);");
    CHECK(module_error(".global .b8 x = 0xFF0(y);") ==
          "PTX line 4: the mask 0xFF0 does not select one byte of an address, as 0xFF00 does: "
          ".global .b8 x = 0xFF0(y);");
    CHECK(module_error(".global .b8 x = 0(y);") ==
          "PTX line 4: the mask 0 does not select one byte of an address, as 0xFF00 does: .global .b8 x = 0(y);");
    CHECK(module_error(".global .u64 x = generic(1);") ==
          "PTX line 4: expected the name of a variable or function, found '1': .global .u64 x = generic(1);");
    CHECK(module_error(".global .u64 x = generic(y+4);") ==
          "PTX line 4: expected ')' after the name, found '+': .global .u64 x = generic(y+4);");
    CHECK(module_error(".global .b8 x = 0xFF(y;") ==
          "PTX line 4: expected ')' after the masked address, found ';': .global .b8 x = 0xFF(y;");
    CHECK(module_error(".global .u32 x = ;") ==
          "PTX line 4: expected an initial value of 'x', found ';': .global .u32 x = ;");
    CHECK(module_error(".global .u32 x[2] = 1;") ==
          "PTX line 4: expected '{' before the initial values of 'x', found '1': .global .u32 x[2] = 1;");
    CHECK(module_error(".global .u32 x = {1};") ==
          "PTX line 4: expected an initial value of 'x', found '{': .global .u32 x = {1};");
    CHECK(module_error(".global .u32 x[2] = {1, 2, 3};") ==
          "PTX line 4: more than 2 initial values for 'x': .global .u32 x[2] = {1, 2, 3};");
    CHECK(module_error(".global .u32 x[2] = {1, };") ==
          "PTX line 4: expected an initial value of 'x', found '}': .global .u32 x[2] = {1, };");
    CHECK(module_error(".global .u32 x[2] = {1 2};") ==
          "PTX line 4: expected '}' after the initial values, found '2': .global .u32 x[2] = {1 2};");
    CHECK(module_error(".global .u32 x[2][3] = {{1}, {2}};") ==
          "PTX line 4: the previous row gives 1 of the first 3 values of 'x': give every value: "
          ".global .u32 x[2][3] = {{1}, {2}};");
    CHECK(module_error(".global .texref t = 1;") == "PTX line 4: expected '{', found '1': .global .texref t = 1;");
}

TEST_CASE("functions")
{
    CHECK(module_error(".func (.param .b32 r) (.param .b32 a);") ==
          "PTX line 4: expected the name of a function, found '(': .func (.param .b32 r) (.param .b32 a);");
    CHECK(module_error(".entry k(.param .b32 a") ==
          "PTX line 4: expected ')' after the parameters, found the end of the text: .entry k(.param .b32 a");
    CHECK(module_error(".entry k(a);") ==
          "PTX line 4: expected a state space such as .reg, .param or .shared, found 'a': .entry k(a);");
    CHECK(module_error(".entry k(.foo .b32 a);") ==
          "PTX line 4: expected a state space such as .reg, .param or .shared, found '.foo': .entry k(.foo .b32 a);");
    CHECK(module_error(".entry k(.shared .b32 a);") ==
          "PTX line 4: a parameter is in .param or .reg, not in .shared: .entry k(.shared .b32 a);");
    CHECK(module_error(".entry k(.param .u64 .ptr .foo a);") ==
          "PTX line 4: expected a state space, .align or the parameter's name after .ptr, found '.foo': "
          ".entry k(.param .u64 .ptr .foo a);");
    CHECK(module_error(".entry k() ret;") ==
          "PTX line 4: expected the body of 'k' or ';', found 'ret': .entry k() ret;");
    CHECK(module_error(".entry k() .maxntid 1, 2, 3, 4 {}") ==
          "PTX line 4: more than 3 extents after .maxntid: .entry k() .maxntid 1, 2, 3, 4 {}");
    CHECK(module_error(".entry k() .maxntid {}") ==
          "PTX line 4: expected the number after .maxntid, found '{': .entry k() .maxntid {}");
    CHECK(module_error(".entry k() .maxnreg 4294967296 {}") ==
          "PTX line 4: the number after .maxnreg is 4294967296, but at most 4294967295 is allowed: "
          ".entry k() .maxnreg 4294967296 {}");
    CHECK(module_error(".entry k() .fast {}") ==
          "PTX line 4: '.fast' has no meaning between the parameters and the body of a function: .entry k() .fast {}");
    CHECK(module_error(".entry k() {\n\n ret;") == "PTX line 4: the '{' on this line has no '}': .entry k() {");
    CHECK(module_error(".entry k() {} }") == "PTX line 4: expected a directive, found '}': .entry k() {} }");
}

TEST_CASE("statements")
{
    CHECK(body_error(";") == "PTX line 5: expected an instruction, a label, a declaration or '}', found ';': ;");
    CHECK(body_error("(a), b;") ==
          "PTX line 5: expected an instruction, a label, a declaration or '}', found '(': (a), b;");
    CHECK(body_error("\"x\";") ==
          "PTX line 5: expected an instruction, a label, a declaration or '}', found the string \"x\": \"x\";");
    CHECK(body_error("ret\n") == "PTX line 7: expected an operand, found '}': }");
    CHECK(body_error("@1 ret;") == "PTX line 5: expected the guard predicate after '@', found '1': @1 ret;");
    CHECK(body_error("@!!p ret;") == "PTX line 5: expected the guard predicate after '@', found '!': @!!p ret;");
    CHECK(body_error("@p { ret; }") == "PTX line 5: expected an instruction, found '{': @p { ret; }");
    CHECK(body_error("@p L: ret;") == "PTX line 5: expected an operand, found ':': @p L: ret;");
    CHECK(body_error(".maxnreg 5;") == "PTX line 5: '.maxnreg' has no meaning in the body of a function: .maxnreg 5;");
    CHECK(body_error(".branchtargets a;") == "PTX line 5: '.branchtargets' needs a label before it: .branchtargets a;");
    CHECK(body_error("t: .branchtargets 1;") ==
          "PTX line 5: expected the name of a target, found '1': t: .branchtargets 1;");
    CHECK(body_error("t: .calltargets a b;") ==
          "PTX line 5: expected ';' after .calltargets, found 'b': t: .calltargets a b;");
    CHECK(body_error("t: .callprototype;") ==
          "PTX line 5: expected the name of a function, found ';': t: .callprototype;");
    CHECK(body_error(".loc 1 2;") == "PTX line 5: expected the column of .loc, found ';': .loc 1 2;");
    CHECK(body_error(".loc 1 x 2;") == "PTX line 5: expected the line number of .loc, found 'x': .loc 1 x 2;");
    CHECK(body_error(".loc x 1 2;") == "PTX line 5: expected the file number of .loc, found 'x': .loc x 1 2;");
    CHECK(body_error(".loc 1 2 3, x") == "PTX line 5: expected function_name or inlined_at, found 'x': .loc 1 2 3, x");
    CHECK(body_error(".loc 1 2 3, function_name 1") ==
          "PTX line 5: expected the label of a name after function_name, found '1': .loc 1 2 3, function_name 1");
    CHECK(body_error(".loc 1 2 3, inlined_at 1 x") ==
          "PTX line 5: expected the line number of inlined_at, found 'x': .loc 1 2 3, inlined_at 1 x");
}

TEST_CASE("operands")
{
    CHECK(body_error("mov a, ;") == "PTX line 5: expected an operand, found ';': mov a, ;");
    CHECK(body_error("mov a,, b;") == "PTX line 5: expected an operand, found ',': mov a,, b;");
    CHECK(body_error("mov a, \"b\";") == "PTX line 5: expected an operand, found the string \"b\": mov a, \"b\";");
    CHECK(body_error("mov a, b c;") == "PTX line 5: expected ',' or ';' after an operand, found 'c': mov a, b c;");
    CHECK(body_error("mov a|1, b;") == "PTX line 5: expected a register or '_' after '|', found '1': mov a|1, b;");
    CHECK(body_error("mov {}, b;") == "PTX line 5: expected an operand, found '}': mov {}, b;");
    CHECK(body_error("mov {a, }, b;") == "PTX line 5: expected an operand, found '}': mov {a, }, b;");
    CHECK(body_error("mov {a b}, b;") ==
          "PTX line 5: expected '}' after the elements of a vector, found 'b': mov {a b}, b;");
    CHECK(body_error("ld a, [];") == "PTX line 5: expected an operand, found ']': ld a, [];");
    CHECK(body_error("ld a, [b;") == "PTX line 5: expected ']' after an address, found ';': ld a, [b;");
    CHECK(body_error("ld a, [b, c;") == "PTX line 5: expected ']' after the list in brackets, found ';': ld a, [b, c;");
    CHECK(body_error("ld a, [b+];") == "PTX line 5: expected a constant, found ']': ld a, [b+];");
    CHECK(body_error("ld a, [b+c];") == "PTX line 5: expected a constant, found 'c': ld a, [b+c];");
    CHECK(body_error("ld a, [4+b];") == "PTX line 5: expected a constant, found 'b': ld a, [4+b];");
    for (const char* const base : {"!b", "-b", "b.x", "b|c", "1.5", "{b}", "_"}) {
        CHECK(body_error(fmt::format("ld a, [{}];", base)) ==
              fmt::format("PTX line 5: an address in brackets is a register, a variable or an integer, plus an offset: "
                          "ld a, [{}];",
                          base));
    }
    CHECK(body_error("mov a, b[2];") ==
          "PTX line 5: subscripts are not supported: write [b+offset] with the offset in bytes: mov a, b[2];");
    CHECK(body_error("mov a, b.x.y;") == "PTX line 5: expected ',' or ';' after an operand, found '.y': mov a, b.x.y;");
    CHECK(body_error("call (r, f;") ==
          "PTX line 5: expected ')' after the arguments of a call, found ';': call (r, f;");
    CHECK(body_error("mov (a), b;") == "PTX line 5: expected a constant, found 'a': mov (a), b;");
}

TEST_CASE("constant expressions")
{
    CHECK(body_error("mov a, 1 / 0;") == "PTX line 5: division by zero in a constant expression: mov a, 1 / 0;");
    CHECK(body_error("mov a, 1 % 0;") == "PTX line 5: division by zero in a constant expression: mov a, 1 % 0;");
    CHECK(body_error("mov a, 1.0 / 0;") == "PTX line 5: division by zero in a constant expression: mov a, 1.0 / 0;");
    CHECK(body_error("mov a, (1;") ==
          "PTX line 5: expected ')' after the expression in parentheses, found ';': mov a, (1;");
    CHECK(body_error("mov a, (.s32) 1;") == "PTX line 5: expected a constant, found '.s32': mov a, (.s32) 1;");
    CHECK(body_error("mov a, (.s64 1;") ==
          "PTX line 5: expected ')' after the type of a cast, found '1': mov a, (.s64 1;");
    CHECK(body_error("mov a, (.s64) 1.5;") ==
          "PTX line 5: '.s64' needs integers, not a real number: mov a, (.s64) 1.5;");
    CHECK(body_error("mov a, 1 ? 2;") ==
          "PTX line 5: expected ':' of the conditional operator, found ';': mov a, 1 ? 2;");
    CHECK(body_error("mov a, 1.5 ? 2 : 3;") ==
          "PTX line 5: '?' needs integers, not a real number: mov a, 1.5 ? 2 : 3;");
    for (const char* const expression :
         {"~1.5", "!1.5", "1.5 % 2", "1.5 << 2", "2 >> 1.5", "1.5 & 2", "1 | 1.5", "1 ^ 1.5", "1 && 1.5", "1.5 || 1"}) {
        CAPTURE(expression);
        CHECK(body_error(fmt::format("mov a, {};", expression)).find("needs integers, not a real number") !=
              std::string::npos);
    }
    CHECK(body_error("mov a, b+1.5;") == "PTX line 5: '+' needs integers, not a real number: mov a, b+1.5;");
}

TEST_CASE("nesting is limited")
{
    const auto repeated = [](std::string_view unit, std::size_t times) {
        std::string text;
        for (std::size_t i = 0; i < times; ++i) {
            text += unit;
        }
        return text;
    };
    constexpr std::size_t much = 1'000'000;
    CHECK(body_error(repeated("{", 150) + repeated("}", 150)).empty());
    for (const std::string& text :
         {repeated("{", much), "mov a, " + repeated("(", much), "mov a, " + repeated("-", much),
          "mov a, " + repeated("{", much), "mov a, " + repeated("[", much), "mov a, " + repeated("!", much),
          "mov a, " + repeated("1?", much), "mov a, " + repeated("1?1:", much), "call " + repeated("[{", much)}) {
        const std::string error = body_error(text);
        CHECK(error.starts_with("PTX line 5: nested more than 200 levels deep: "));
        CHECK(error.size() < 300);
    }
    const std::string name(much, 'x');
    const std::string error = module_error("." + name + " y;");
    CHECK(error.starts_with("PTX line 4: '.xxx"));
    CHECK(error.size() < 700);
}

}  // namespace tessera::emulator::ptx
