#include "ptx/variables.hpp"

#include <fmt/format.h>

#include <bit>

#include "ptx/initial_values.hpp"

namespace tessera::emulator::ptx {
namespace {

constexpr std::uint64_t max_bytes = std::uint64_t{1} << 48;
constexpr std::uint64_t max_alignment = std::uint64_t{1} << 30;
constexpr std::uint64_t max_registers = std::uint64_t{1} << 22;

std::uint32_t parse_alignment(TokenCursor& cursor)
{
    const Token token = cursor.current();
    const std::uint64_t alignment = cursor.expect_integer("the number of bytes of .align", max_alignment);
    if (!std::has_single_bit(alignment)) {
        cursor.fail(fmt::format("an alignment of {} bytes is not a power of two", alignment), token);
    }
    return static_cast<std::uint32_t>(alignment);
}

/// What follows .ptr: `.global .align 16`, both optional.
void parse_pointee(TokenCursor& cursor, Variable& variable)
{
    variable.pointer = true;
    while (cursor.at_dotted()) {
        if (cursor.accept_dotted("align")) {
            variable.pointee_alignment = parse_alignment(cursor);
        } else if (cursor.at_dotted("global") || cursor.at_dotted("const") || cursor.at_dotted("local") ||
                   cursor.at_dotted("shared")) {
            variable.pointee_space = declared_space(cursor.take().text);
        } else {
            cursor.fail_expected("a state space, .align or the parameter's name after .ptr");
        }
    }
}

/// The state space, the type and the directives around them, up to the name.
Variable parse_prefix(TokenCursor& cursor, const Linkage& linkage)
{
    Variable variable;
    variable.location = cursor.location();
    variable.external = linkage.external;
    variable.visible = linkage.visible;
    variable.weak = linkage.weak;
    variable.common = linkage.common;
    const std::optional<StateSpace> space =
        cursor.at_dotted() ? declared_space(cursor.current().text) : std::optional<StateSpace>();
    if (!space) {
        cursor.fail_expected("a state space such as .reg, .param or .shared");
    }
    variable.space = *space;
    const bool legacy_texture = cursor.take().text == "tex";
    while (cursor.at_dotted()) {
        const Token directive = cursor.take();
        if (const std::optional<Type> type = type_named(directive.text)) {
            if (variable.type != Type::none) {
                cursor.fail(fmt::format("a second type, .{}, after .{}", directive.text, name_of(variable.type)),
                            directive);
            }
            variable.type = legacy_texture ? Type::texref : *type;
        } else if (directive.text == "align") {
            variable.alignment = parse_alignment(cursor);
        } else if (directive.text == "v2" || directive.text == "v4" || directive.text == "v8") {
            variable.vector_width = static_cast<std::uint32_t>(directive.text[1] - '0');
        } else if (directive.text == "attribute") {
            variable.managed = parse_attributes(cursor).managed;
        } else if (directive.text == "ptr" && variable.space == StateSpace::param) {
            parse_pointee(cursor, variable);
        } else {
            cursor.fail(fmt::format("'.{}' has no meaning in a declaration", directive.text), directive);
        }
    }
    if (variable.type == Type::none) {
        cursor.fail_expected("a type such as .b32");
    }
    return variable;
}

void require_possible_size(const TokenCursor& cursor, const Variable& variable, const Token& name)
{
    std::uint64_t bytes = std::uint64_t{variable.vector_width} * size_of(variable.type);
    for (const std::uint64_t extent : variable.extents) {
        if (extent != 0 && bytes > max_bytes / extent) {
            cursor.fail(fmt::format("'{}' has more than 2^48 bytes", name.text), name);
        }
        bytes *= extent != 0 ? extent : 1;  // []: the extent is not known yet
    }
}

void parse_extents(TokenCursor& cursor, Variable& variable)
{
    while (cursor.accept('[')) {
        variable.is_array = true;
        if (cursor.at(']') && variable.extents.empty()) {
            variable.extents.push_back(0);
        } else {
            variable.extents.push_back(cursor.expect_integer("the extent of an array", max_bytes));
        }
        cursor.expect(']', "after the extent of an array");
    }
}

/// Name, extents or count, and initial value of a variable that is like `prefix`.
Variable parse_declarator(TokenCursor& cursor, const Variable& prefix)
{
    Variable variable = prefix;
    const Token name = cursor.expect_word("the name of a variable");
    variable.name = name.text;
    variable.location = prefix.location;
    variable.location.line = name.line;
    if (cursor.at('<')) {
        if (variable.space != StateSpace::reg) {
            cursor.fail(fmt::format("only registers can be declared as {}<count>: declare an array or each variable",
                                    name.text),
                        cursor.current());
        }
        cursor.take();
        variable.count = static_cast<std::uint32_t>(cursor.expect_integer("the count of registers", max_registers));
        cursor.expect('>', "after the count of registers");
    } else if (variable.space == StateSpace::reg && cursor.at('[')) {
        cursor.fail(fmt::format("registers cannot be an array: write {}<count>", name.text), cursor.current());
    } else {
        parse_extents(cursor, variable);
    }
    require_possible_size(cursor, variable, name);
    const Token equals = cursor.current();
    if (cursor.accept('=')) {
        if (variable.space != StateSpace::global && variable.space != StateSpace::constant) {
            cursor.fail(
                fmt::format("'{}' cannot have an initial value: only .global and .const variables can", variable.name),
                equals);
        }
        parse_initial_values(cursor, variable);
        require_possible_size(cursor, variable, name);
    }
    return variable;
}

}  // namespace

std::optional<StateSpace> declared_space(std::string_view directive) noexcept
{
    if (directive == "reg") {
        return StateSpace::reg;
    }
    if (directive == "param") {
        return StateSpace::param;
    }
    if (directive == "shared") {
        return StateSpace::shared;
    }
    if (directive == "local") {
        return StateSpace::local;
    }
    if (directive == "global" || directive == "tex") {
        return StateSpace::global;
    }
    if (directive == "const") {
        return StateSpace::constant;
    }
    return std::nullopt;
}

std::vector<Variable> parse_variables(TokenCursor& cursor, const Linkage& linkage)
{
    const Variable prefix = parse_prefix(cursor, linkage);
    std::vector<Variable> variables;
    do {
        variables.push_back(parse_declarator(cursor, prefix));
    } while (cursor.accept(','));
    cursor.expect(';', "after a declaration");
    return variables;
}

std::vector<Variable> parse_parameters(TokenCursor& cursor)
{
    std::vector<Variable> parameters;
    cursor.expect('(', "before the parameters");
    if (cursor.accept(')')) {
        return parameters;
    }
    do {
        const Token directive = cursor.current();
        const Variable prefix = parse_prefix(cursor, {});
        if (prefix.space != StateSpace::param && prefix.space != StateSpace::reg) {
            cursor.fail(fmt::format("a parameter is in .param or .reg, not in .{}", directive.text), directive);
        }
        parameters.push_back(parse_declarator(cursor, prefix));
    } while (cursor.accept(','));
    cursor.expect(')', "after the parameters");
    return parameters;
}

Attributes parse_attributes(TokenCursor& cursor)
{
    Attributes attributes;
    cursor.expect('(', "after .attribute");
    do {
        if (cursor.accept_dotted("managed")) {
            attributes.managed = true;
        } else if (cursor.accept_dotted("unified")) {  // a unique identifier of 128 bits, for linkers
            cursor.expect('(', "after .unified");
            (void)cursor.expect_integer("the first half of the identifier", UINT64_MAX);
            cursor.expect(',', "between the halves of the identifier");
            (void)cursor.expect_integer("the second half of the identifier", UINT64_MAX);
            cursor.expect(')', "after the identifier");
        } else {
            cursor.fail_expected("an attribute: .managed or .unified");
        }
    } while (cursor.accept(','));
    cursor.expect(')', "after the attributes");
    return attributes;
}

}  // namespace tessera::emulator::ptx
