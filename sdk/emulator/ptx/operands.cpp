#include "ptx/operands.hpp"

#include <fmt/format.h>

#include "ptx/constant_expression.hpp"

namespace tessera::emulator::ptx {
namespace {

/// Registers, variables, labels, but not the constant WARP_SZ.
bool is_name(const Token& token) noexcept { return token.kind == Token::Kind::word && token.text != "WARP_SZ"; }

/// Elements and `close`; the opening character is already taken.
void parse_elements(TokenCursor& cursor, char close, std::string_view context, std::vector<Operand>& elements)
{
    do {
        elements.push_back(parse_operand(cursor));
    } while (cursor.accept(','));
    cursor.expect(close, context);
}

Operand parse_vector(TokenCursor& cursor)
{
    cursor.take();
    Operand operand;
    operand.kind = Operand::Kind::vector;
    parse_elements(cursor, '}', "after the elements of a vector", operand.elements);
    return operand;
}

/// `[a]`, `[a+4]` and `[64]` are addresses, anything else in brackets is a list.
Operand parse_brackets(TokenCursor& cursor)
{
    const Token opening = cursor.take();
    Operand first = parse_operand(cursor);
    if (!cursor.at(']')) {
        Operand list;
        list.kind = Operand::Kind::bracket;
        list.elements.push_back(std::move(first));
        if (cursor.accept(',')) {
            parse_elements(cursor, ']', "after the list in brackets", list.elements);
        } else {
            cursor.expect(']', "after an address");
        }
        return list;
    }
    cursor.take();
    const bool plain = !first.negated && first.component.empty() && first.second.empty();
    const bool address = first.kind == Operand::Kind::identifier || first.kind == Operand::Kind::integer;
    if (!plain || !address) {
        cursor.fail("an address in brackets is a register, a variable or an integer, plus an offset", opening);
    }
    first.kind = Operand::Kind::address;
    return first;
}

/// The q of p|q.
void parse_second(TokenCursor& cursor, Operand& operand)
{
    if (cursor.accept('|')) {
        operand.second = cursor.expect_word("a register or '_' after '|'").text;
    }
}

Operand parse_name(TokenCursor& cursor)
{
    Operand operand;
    const Token name = cursor.take();
    if (name.text == "_") {
        parse_second(cursor, operand);
        return operand;
    }
    operand.kind = Operand::Kind::identifier;
    operand.name = name.text;
    const Token& next = cursor.current();
    if (next.kind == Token::Kind::dotted) {
        operand.component = cursor.take().text;
    } else if (next.kind == Token::Kind::symbol) {
        switch (next.symbol) {
            case '|': parse_second(cursor, operand); break;
            case '+':
            case '-': operand.integer = parse_offset(cursor); break;
            case '[':
                cursor.fail(fmt::format("subscripts are not supported: write [{}+offset] with the offset in bytes",
                                        operand.name),
                            next);
            default: break;
        }
    }
    return operand;
}

Operand parse_constant_operand(TokenCursor& cursor)
{
    Operand operand;
    const Constant value = parse_constant(cursor);
    if (value.is_real()) {
        operand.kind = Operand::Kind::real;
        operand.real_type = value.real_type;
        operand.bits = value.bits;
    } else {
        operand.kind = Operand::Kind::integer;
        operand.integer = static_cast<std::int64_t>(value.bits);
    }
    return operand;
}

/// The list in parentheses of a call.
Operand parse_call_list(TokenCursor& cursor)
{
    cursor.take();
    Operand operand;
    operand.kind = Operand::Kind::vector;
    if (!cursor.accept(')')) {
        parse_elements(cursor, ')', "after the arguments of a call", operand.elements);
    }
    return operand;
}

}  // namespace

Operand parse_operand(TokenCursor& cursor)
{
    if (is_name(cursor.current())) {
        return parse_name(cursor);
    }
    if (cursor.at('[') || cursor.at('{')) {
        const TokenCursor::Nesting nesting(cursor);
        return cursor.at('[') ? parse_brackets(cursor) : parse_vector(cursor);
    }
    if ((cursor.at('!') || cursor.at('-')) && is_name(cursor.following())) {
        cursor.take();
        Operand operand = parse_name(cursor);
        operand.negated = true;
        return operand;
    }
    if (!at_constant(cursor)) {
        cursor.fail_expected("an operand");
    }
    return parse_constant_operand(cursor);
}

std::vector<Operand> parse_operands(TokenCursor& cursor, bool is_call)
{
    std::vector<Operand> operands;
    if (cursor.at(';')) {
        return operands;
    }
    constexpr std::size_t usual_operands = 3;
    operands.reserve(usual_operands);
    do {
        operands.push_back(is_call && cursor.at('(') ? parse_call_list(cursor) : parse_operand(cursor));
    } while (cursor.accept(','));
    return operands;
}

}  // namespace tessera::emulator::ptx
