/// Linking the PTX of several translation units. The program of two units, which runs, shows that ptxas accepts the
/// result.

#include "runtime/ptx_link.hpp"

#include <doctest/doctest.h>

#include <vector>

using namespace tessera::emulator;

namespace {

const std::string head = ".version 9.0\n.target sm_90\n.address_size 64\n";

std::size_t count(const std::string& text, const std::string& part)
{
    std::size_t found = 0;
    for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
        ++found;
    }
    return found;
}

}  // namespace

TEST_CASE("a declaration in one unit refers to the definition in another, placed before its use")
{
    const std::vector<std::string> units{
        head +
            ".extern .func (.param .b32 r) twice(.param .b32 x);\n.extern .global .align 4 .b8 table[16];\n"
            ".visible .entry k(.param .u64 p) { call (r), twice, (x); ld.global.u32 %r1, [table]; }\n",
        head +
            ".visible .global .align 4 .b8 table[16] = {1, 2};\n.visible .func (.param .b32 r) twice(.param .b32 x) { "
            "ret; }\n"};
    const std::string linked = link_ptx(units);
    CHECK(count(linked, ".version") == 1);
    CHECK(count(linked, ".extern") == 0);
    CHECK(count(linked, "table[16]") == 1);
    CHECK(count(linked, "twice(.param") == 2);
    CHECK(linked.find("twice(.param .b32 x);") < linked.find(".entry k"));
    CHECK(linked.find("table[16] =") < linked.find(".entry k"));
}

TEST_CASE("names without linkage are made distinct in all their uses, and nothing else changes")
{
    const std::string unit =
        ".global .align 1 .b8 $str[2] = {65};\n.func hidden() { mov.u64 %rd1, $str; mov.u64 %rd2, $str$1; }\n";
    const std::vector<std::string> units{head + unit, head + unit};
    const std::string linked = link_ptx(units);
    CHECK(count(linked, "$str[2]") == 1);
    CHECK(count(linked, "$str$unit1[2]") == 1);
    CHECK(count(linked, "mov.u64 %rd1, $str;") == 1);
    CHECK(count(linked, "mov.u64 %rd1, $str$unit1;") == 1);
    CHECK(count(linked, "$str$1;") == 2);
    CHECK(count(linked, ".func hidden()") == 1);
    CHECK(count(linked, ".func hidden$unit1()") == 1);
}

TEST_CASE("weak definitions and undefined names appear once")
{
    const std::string unit =
        ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b)\n;\n.weak .func shared_code() { ret; }\n"
        ".weak .global .align 4 .u32 counter;\n";
    const std::vector<std::string> units{head + unit, head + unit, head + unit};
    const std::string linked = link_ptx(units);
    CHECK(count(linked, "vprintf") == 1);
    CHECK(count(linked, "shared_code") == 1);
    CHECK(count(linked, "counter") == 1);
}

TEST_CASE("source files of the units stay distinct; comments hide nothing")
{
    const std::string unit =
        ".file 1 \"a;b{.cu\"\n// } ; {\n.visible .func f() { /* } */ .loc 1 5 3, function_name $L, inlined_at 1 7 "
        "2\nret; }\n";
    const std::vector<std::string> units{head + unit,
                                         head + ".file 1 \"c.cu\"\n.visible .func g() {\n.loc 1 9 1\nret; }\n"};
    const std::string linked = link_ptx(units);
    CHECK(linked.find(".file 1 \"a;b{.cu\"") != std::string::npos);
    CHECK(linked.find(".file 100001 \"c.cu\"") != std::string::npos);
    CHECK(linked.find(".loc 100001 9 1") != std::string::npos);
    CHECK(linked.find("inlined_at 1 7 2") != std::string::npos);
    CHECK(linked.find(".func g()") != std::string::npos);
}

TEST_CASE("a number that is too large for a source file stays as it is")
{
    const std::vector<std::string> units{head + ".visible .func f() { ret; }\n",
                                         head + ".visible .func g() {\n.loc 99999999999999999999 9 1\nret; }\n"};
    CHECK(link_ptx(units).find(".loc 99999999999999999999 9 1") != std::string::npos);
}
