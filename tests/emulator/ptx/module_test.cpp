// Directives at module scope.
#include "snippets.hpp"

namespace tessera::emulator::ptx {

TEST_CASE("a module's header")
{
    const Module module = parse("// comment\n.version 8.7\n.target sm_90a, debug, texmode_unified .address_size 32\n");
    CHECK(module.version_major == 8);
    CHECK(module.version_minor == 7);
    CHECK(module.target == "sm_90a");
    CHECK(module.target_options == std::vector<std::string>{"debug", "texmode_unified"});
    CHECK(module.address_size == 32);
    CHECK(module.functions.empty());
    CHECK(module.variables.empty());
}

TEST_CASE("an address has 64 bits unless the module says otherwise")
{
    CHECK(parse(".version 8.7 .target sm_80").address_size == 64);
}

TEST_CASE("zero bytes at the end of the text are ignored")
{
    using namespace std::string_view_literals;
    CHECK(parse(".version 8.7 .target sm_80\n\0\0\0"sv).target == "sm_80");
}

TEST_CASE("source files")
{
    const Module module = parse_module(".file 1 \"a.cu\"\n.file 7 \"c:\\\\dir\\\\b \\\"q\\\".cu\", 1700000000, 4711\n");
    CHECK(module.files == std::map<std::uint32_t, std::string>{{1, "a.cu"}, {7, "c:\\dir\\b \"q\".cu"}});
}

TEST_CASE("aliases, pragmas and debug directives")
{
    const Module module = parse_module(R"(
        .func original() { ret; }
        .func copy();
        .alias copy, original;
        .pragma "nounroll", "other"; .loc 1 2 3
        @@DWARF .byte 0x11, '}' anything
        .section .debug_info {
            .b8 1 .b32 .debug_abbrev  /* } */  // }
            label: .b8 2, 3 .ascii "}\""
            { }
        }
        .section .debug_macinfo { }
        .global .u32 after;)");
    CHECK(module.aliases == std::map<std::string, std::string>{{"copy", "original"}});
    REQUIRE(module.functions.size() == 2);
    CHECK(module.functions[0].defined);
    CHECK(!module.functions[1].defined);
    REQUIRE(module.variables.size() == 1);
    CHECK(module.variables[0].name == "after");
    CHECK(module.variables[0].location.line == 16);
}

TEST_CASE("types have names and sizes")
{
    for (int i = static_cast<int>(Type::pred); i <= static_cast<int>(Type::surfref); ++i) {
        const Type type = static_cast<Type>(i);
        CAPTURE(name_of(type));
        CHECK(type_named(name_of(type)) == type);
        CHECK((size_of(type) == 0) == (type == Type::pred));
    }
    CHECK(size_of(Type::none) == 0);
    CHECK(type_named("") == std::nullopt);
    CHECK(type_named("f128") == std::nullopt);
    CHECK(size_of(Type::b8) == 1);
    CHECK(size_of(Type::bf16) == 2);
    CHECK(size_of(Type::tf32) == 4);
    CHECK(size_of(Type::f16x2) == 4);
    CHECK(size_of(Type::e4m3x2) == 2);
    CHECK(size_of(Type::s64) == 8);
    CHECK(size_of(Type::b128) == 16);
    CHECK(name_of(Type::ue8m0x2) == "ue8m0x2");
    CHECK(name_of(Type::texref) == "texref");
}

}  // namespace tessera::emulator::ptx
