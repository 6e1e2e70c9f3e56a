#pragma once

// Shortens tests: the PTX around the line that a test is about.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <variant>

#include "ptx/parser.hpp"

namespace tessera::emulator::ptx {

inline constexpr std::string_view header = ".version 9.0\n.target sm_100a\n.address_size 64\n";

/// Module directives follow the header at line 4.
inline Module parse_module(std::string_view directives) { return parse(fmt::format("{}{}", header, directives)); }

/// The body of a kernel begins at line 5.
inline Block parse_body(std::string_view statements)
{
    Module module = parse_module(fmt::format(".entry k() {{\n{}\n}}", statements));
    REQUIRE(module.functions.size() == 1);
    REQUIRE(module.functions[0].defined);
    return module.functions[0].body;
}

template <class T>
const T& statement(const Block& block, std::size_t index)
{
    REQUIRE(index < block.statements.size());
    const T* const value = std::get_if<T>(&block.statements[index].value);
    REQUIRE(value != nullptr);
    return *value;
}

inline Instruction parse_instruction(std::string_view text)
{
    const Block body = parse_body(text);
    REQUIRE(body.statements.size() == 1);
    return statement<Instruction>(body, 0);
}

/// An operand that is not the first one, so that .5 is not a modifier.
inline Operand parse_operand_of(std::string_view text)
{
    const Instruction instruction = parse_instruction(fmt::format("op _, {};", text));
    REQUIRE(instruction.operands.size() == 2);
    return instruction.operands[1];
}

inline std::int64_t parse_integer(std::string_view expression)
{
    const Operand operand = parse_operand_of(expression);
    REQUIRE(operand.kind == Operand::Kind::integer);
    return operand.integer;
}

inline Variable parse_variable(std::string_view declaration)
{
    const Module module = parse_module(declaration);
    REQUIRE(module.variables.size() == 1);
    return module.variables[0];
}

/// The parser's error for `text`; empty if there is none.
inline std::string error_of(std::string_view text)
{
    try {
        (void)parse(text);
    } catch (const ParseError& error) {
        return error.what();
    }
    return {};
}

inline std::string module_error(std::string_view directives)
{
    return error_of(fmt::format("{}{}", header, directives));
}

inline std::string body_error(std::string_view statements)
{
    return module_error(fmt::format(".entry k() {{\n{}\n}}", statements));
}

}  // namespace tessera::emulator::ptx
