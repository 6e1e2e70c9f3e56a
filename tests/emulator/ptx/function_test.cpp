// Functions, kernels and their directives; labels, scopes and source lines in bodies.
#include "snippets.hpp"

namespace tessera::emulator::ptx {
namespace {

using Extents = std::vector<std::uint32_t>;

Function parse_function(std::string_view text)
{
    Module module = parse_module(text);
    REQUIRE(module.functions.size() == 1);
    return module.functions[0];
}

}  // namespace

TEST_CASE("a kernel and its parameters")
{
    const Function kernel = parse_function(R"(.visible .entry gemm(
        .param .u64 .ptr .global .align 16 a,
        .param .u64 .ptr b,
        .param .align 64 .b8 map[128],
        .param .f32 alpha) { ret; })");
    CHECK(kernel.kernel);
    CHECK(kernel.name == "gemm");
    CHECK(kernel.visible);
    CHECK(kernel.defined);
    CHECK(kernel.results.empty());
    CHECK(kernel.location.line == 4);
    REQUIRE(kernel.parameters.size() == 4);
    CHECK(kernel.parameters[0].name == "a");
    CHECK(kernel.parameters[0].space == StateSpace::param);
    CHECK(kernel.parameters[0].type == Type::u64);
    CHECK(kernel.parameters[0].pointer);
    CHECK(kernel.parameters[0].pointee_space == StateSpace::global);
    CHECK(kernel.parameters[0].pointee_alignment == 16);
    CHECK(kernel.parameters[0].alignment == 0);
    CHECK(kernel.parameters[1].pointer);
    CHECK(!kernel.parameters[1].pointee_space);
    CHECK(kernel.parameters[1].pointee_alignment == 0);
    CHECK(!kernel.parameters[2].pointer);
    CHECK(kernel.parameters[2].alignment == 64);
    CHECK(kernel.parameters[2].size() == 128);
    CHECK(kernel.parameters[3].type == Type::f32);
    CHECK(kernel.parameters[3].location.line == 8);
    CHECK(!kernel.max_threads);
    CHECK(!kernel.required_cluster);
    CHECK(!kernel.max_registers);
}

TEST_CASE("performance-tuning directives")
{
    const Function kernel = parse_function(R"(.entry k
        .maxntid 256 .reqntid 32, 4 .reqnctapercluster 2, 1, 1 .minnctapersm 2 .maxnreg 168 .maxclusterrank 8
        .explicitcluster .blocksareclusters .pragma "nounroll"; .maxnctapersm 4 .local_maxnreg 64 .attribute(.unified(1, 2)) .abi_preserve 3
        .abi_preserve_control 1 { })");
    CHECK(kernel.max_threads == Extents{256, 1, 1});
    CHECK(kernel.required_threads == Extents{32, 4, 1});
    CHECK(kernel.required_cluster == Extents{2, 1, 1});
    CHECK(kernel.min_ctas_per_sm == 2U);
    CHECK(kernel.max_registers == 168U);
    CHECK(kernel.max_cluster_rank == 8U);
    CHECK(kernel.explicit_cluster);
    CHECK(kernel.blocks_are_clusters);
    CHECK(!kernel.no_return);
    CHECK(kernel.defined);
    CHECK(kernel.body.statements.empty());
}

TEST_CASE("device functions")
{
    const Function declaration =
        parse_function(".extern .func (.param .b32 func_retval0) vprintf (.param .b64 p0, .param .b64 p1) ;");
    CHECK(!declaration.kernel);
    CHECK(declaration.external);
    CHECK(!declaration.defined);
    REQUIRE(declaration.results.size() == 1);
    CHECK(declaration.results[0].name == "func_retval0");
    CHECK(declaration.parameters.size() == 2);

    const Function weak = parse_function(
        ".weak .func .attribute(.unified(1, 2)) (.param .align 16 .b8 r[16]) f (.reg .b32 a) .noreturn { trap; }");
    CHECK(weak.weak);
    CHECK(weak.no_return);
    CHECK(weak.results.at(0).size() == 16);
    CHECK(weak.parameters.at(0).space == StateSpace::reg);
    CHECK(weak.body.statements.size() == 1);

    CHECK(parse_function(".func f { ret; }").parameters.empty());
    CHECK(parse_function(".func f() { ret; }").parameters.empty());
    CHECK(!parse_function(".func f;").defined);
    CHECK(parse_function(".func f(.param .b8 variadic[]);").parameters.at(0).extents.at(0) == 0);
}

TEST_CASE("labels, also right before the end of a block")
{
    const Block body = parse_body("$L__BB0_1: LAB_WAIT: ret;\n%l:\n_1:");
    REQUIRE(body.statements.size() == 5);
    CHECK(statement<Label>(body, 0).name == "$L__BB0_1");
    CHECK(statement<Label>(body, 0).location.line == 5);
    CHECK(statement<Label>(body, 1).name == "LAB_WAIT");
    CHECK(statement<Instruction>(body, 2).opcode == "ret");
    CHECK(statement<Label>(body, 3).name == "%l");
    CHECK(statement<Label>(body, 4).name == "_1");
    CHECK(statement<Label>(body, 4).location.line == 7);
}

TEST_CASE("scopes nest")
{
    const Block body = parse_body("{ .reg .pred p; { L: @p bra L; } L: } {}");
    REQUIRE(body.statements.size() == 2);
    const Block& outer = statement<Block>(body, 0);
    REQUIRE(outer.statements.size() == 3);
    CHECK(statement<Variable>(outer, 0).name == "p");
    const Block& inner = statement<Block>(outer, 1);
    REQUIRE(inner.statements.size() == 2);
    CHECK(statement<Label>(inner, 0).name == "L");
    CHECK(statement<Instruction>(inner, 1).operands.at(0).name == "L");
    CHECK(statement<Label>(outer, 2).name == "L");
    CHECK(statement<Block>(body, 1).statements.empty());
}

TEST_CASE("target lists and prototypes")
{
    const Block body = parse_body(R"(ts: .branchtargets $L1, $L2;
        cs: .calltargets f, g;
        prototype_0 : .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[12]) .noreturn;
        p1: .callprototype _ ();)");
    REQUIRE(body.statements.size() == 4);
    const TargetList& branches = statement<TargetList>(body, 0);
    CHECK(branches.label == "ts");
    CHECK(branches.kind == TargetList::Kind::branch);
    CHECK(branches.names == std::vector<std::string>{"$L1", "$L2"});
    CHECK(branches.location.line == 5);
    const TargetList& calls = statement<TargetList>(body, 1);
    CHECK(calls.label == "cs");
    CHECK(calls.kind == TargetList::Kind::call);
    CHECK(calls.names == std::vector<std::string>{"f", "g"});
    const TargetList& prototype = statement<TargetList>(body, 2);
    CHECK(prototype.label == "prototype_0");
    CHECK(prototype.kind == TargetList::Kind::prototype);
    CHECK(prototype.names.empty());
    CHECK(prototype.no_return);
    REQUIRE(prototype.results.size() == 1);
    CHECK(prototype.results[0].name == "_");
    REQUIRE(prototype.parameters.size() == 2);
    CHECK(prototype.parameters[1].size() == 12);
    CHECK(prototype.parameters[1].alignment == 8);
    const TargetList& empty = statement<TargetList>(body, 3);
    CHECK(empty.results.empty());
    CHECK(empty.parameters.empty());
    CHECK(!empty.no_return);
}

TEST_CASE(".loc sets the source of the following statements")
{
    const Module module = parse_module(R"(.entry a() {
        add;
        .loc 3 17 5
        add;
        L: .reg .b32 x;
        .loc 4 9 1, function_name $L__info_string0+12, inlined_at 3 18 2  // b.cu:9:1
        { add; }
        .pragma "nounroll";
        .loc 3 0 0
        add;
    }
    .entry b() { add; })");
    const Block& body = module.functions.at(0).body;
    const auto check = [](const Location& location, std::uint32_t line, std::uint32_t file, std::uint32_t source) {
        CHECK(location.line == line);
        CHECK(location.source_file == file);
        CHECK(location.source_line == source);
    };
    check(statement<Instruction>(body, 0).location, 5, 0, 0);
    check(statement<Instruction>(body, 1).location, 7, 3, 17);
    check(statement<Label>(body, 2).location, 8, 3, 17);
    check(statement<Variable>(body, 3).location, 8, 3, 17);
    const Location inlined = statement<Instruction>(statement<Block>(body, 4), 0).location;
    check(inlined, 10, 4, 9);
    REQUIRE(inlined.inlined == 1);
    CHECK(module.inlined.at(0) == InlinedCall{"$L__info_string0", 12, 3, 18, 0});
    check(statement<Instruction>(body, 5).location, 13, 3, 0);
    check(statement<Instruction>(module.functions.at(1).body, 0).location, 15, 0, 0);
}

TEST_CASE(".loc of nested inlined functions: each call is found through the last .loc of its place")
{
    const Module module = parse_module(R"(.entry a() {
        .loc 1 50 3
        add;
        .loc 1 20 7, function_name $f, inlined_at 1 50 3
        .loc 2 9 1, function_name $g, inlined_at 1 20 7
        add;
        .loc 2 9 2, function_name $g, inlined_at 1 20 7
        add;
        .loc 1 51 3
        add;
    }
    .entry b() {
        .loc 2 9 1, function_name $g, inlined_at 1 20 7
        add;
    }
    .section .debug_str
    {
$f:
.b8 95,90,49,102
.b8 105,0
$g:
.b8 103,0
    })");
    REQUIRE(module.inlined.size() == 3);
    const Block& body = module.functions.at(0).body;
    CHECK(statement<Instruction>(body, 0).location.inlined == 0);
    CHECK(statement<Instruction>(body, 1).location.inlined == 2);
    CHECK(statement<Instruction>(body, 2).location.inlined == 2);
    CHECK(statement<Instruction>(body, 3).location.inlined == 0);
    CHECK(module.inlined[1] == InlinedCall{"$g", 0, 1, 20, 1});
    CHECK(module.inlined[0] == InlinedCall{"$f", 0, 1, 50, 0});
    // The other function did not say where the caller was inlined.
    CHECK(statement<Instruction>(module.functions.at(1).body, 0).location.inlined == 3);
    CHECK(module.inlined[2] == InlinedCall{"$g", 0, 1, 20, 0});
    CHECK(module.debug_strings.at("$f") == std::string("_Z1fi\0", 6));
    CHECK(module.debug_strings.at("$g") == std::string("g\0", 2));
}

}  // namespace tessera::emulator::ptx
