#include "ptx/constant_expression.hpp"

#include <fmt/format.h>

#include <bit>
#include <charconv>

namespace tessera::emulator::ptx {
namespace {

constexpr std::uint64_t warp_size = 32;

/// Precedence of a binary operator, as in C; 0 for other tokens.
unsigned precedence(const Token& token) noexcept
{
    if (token.kind != Token::Kind::symbol) {
        return 0;
    }
    switch (token.symbol) {
        case symbol_or: return 1;
        case symbol_and: return 2;
        case '|': return 3;
        case '^': return 4;
        case '&': return 5;
        case symbol_equal:
        case symbol_unequal: return 6;
        case '<':
        case '>':
        case symbol_less_equal:
        case symbol_greater_equal: return 7;
        case symbol_shift_left:
        case symbol_shift_right: return 8;
        case '+':
        case '-': return 9;
        case '*':
        case '/':
        case '%': return 10;
        default: return 0;
    }
}

constexpr unsigned additive = 9, multiplicative = 10;

Constant integer(std::uint64_t bits, bool is_unsigned) noexcept
{
    return {is_unsigned ? Constant::Kind::unsigned_integer : Constant::Kind::signed_integer, Type::none, bits};
}

Constant truth(bool value) noexcept { return integer(value ? 1 : 0, false); }

Constant real_constant(double value) noexcept
{
    return {Constant::Kind::real, Type::f64, std::bit_cast<std::uint64_t>(value)};
}

double as_real(const Constant& value) noexcept
{
    if (value.is_real()) {
        return value.real();
    }
    return value.kind == Constant::Kind::unsigned_integer ? static_cast<double>(value.bits)
                                                          : static_cast<double>(static_cast<std::int64_t>(value.bits));
}

void require_integer(const TokenCursor& cursor, const Token& operation, const Constant& value)
{
    if (value.is_real()) {
        cursor.fail(fmt::format("{} needs integers, not a real number", describe(operation)), operation);
    }
}

template <class T>
bool compare(char symbol, T left, T right) noexcept
{
    switch (symbol) {
        case symbol_equal: return left == right;
        case symbol_unequal: return left != right;
        case '<': return left < right;
        case '>': return left > right;
        case symbol_less_equal: return left <= right;
        default: return left >= right;
    }
}

Constant divide(const TokenCursor& cursor, const Token& operation, std::uint64_t left, std::uint64_t right,
                bool is_unsigned)
{
    if (right == 0) {
        cursor.fail("division by zero in a constant expression", operation);
    }
    if (operation.symbol == '%') {  // always unsigned in the PTX ISA
        return integer(left % right, true);
    }
    if (is_unsigned) {
        return integer(left / right, true);
    }
    if (right == UINT64_MAX) {  // the quotient by -1 can overflow; the wrapped value is the negation
        return integer(0 - left, false);
    }
    const std::int64_t quotient = static_cast<std::int64_t>(left) / static_cast<std::int64_t>(right);
    return integer(static_cast<std::uint64_t>(quotient), false);
}

Constant combine_reals(const TokenCursor& cursor, const Token& operation, double left, double right)
{
    switch (operation.symbol) {
        case '+': return real_constant(left + right);
        case '-': return real_constant(left - right);
        case '*': return real_constant(left * right);
        case '/':
            if (right == 0) {
                cursor.fail("division by zero in a constant expression", operation);
            }
            return real_constant(left / right);
        default: return truth(compare(operation.symbol, left, right));
    }
}

/// Uses only the low six bits of the shift count, like the assembler.
Constant shift(char symbol, const Constant& value, std::uint64_t count) noexcept
{
    const unsigned bits = static_cast<unsigned>(count % 64);
    const bool is_unsigned = value.kind == Constant::Kind::unsigned_integer;
    if (symbol == symbol_shift_left) {
        return integer(value.bits << bits, is_unsigned);
    }
    return integer(
        is_unsigned ? value.bits >> bits : static_cast<std::uint64_t>(static_cast<std::int64_t>(value.bits) >> bits),
        is_unsigned);
}

Constant combine_integers(const TokenCursor& cursor, const Token& operation, const Constant& left,
                          const Constant& right)
{
    const bool is_unsigned =
        left.kind == Constant::Kind::unsigned_integer || right.kind == Constant::Kind::unsigned_integer;
    switch (operation.symbol) {
        case symbol_or: return truth(left.bits != 0 || right.bits != 0);
        case symbol_and: return truth(left.bits != 0 && right.bits != 0);
        case '|': return integer(left.bits | right.bits, is_unsigned);
        case '^': return integer(left.bits ^ right.bits, is_unsigned);
        case '&': return integer(left.bits & right.bits, is_unsigned);
        case symbol_shift_left:
        case symbol_shift_right: return shift(operation.symbol, left, right.bits);
        case '+': return integer(left.bits + right.bits, is_unsigned);
        case '-': return integer(left.bits - right.bits, is_unsigned);
        case '*': return integer(left.bits * right.bits, is_unsigned);
        case '/':
        case '%': return divide(cursor, operation, left.bits, right.bits, is_unsigned);
        default: break;
    }
    return truth(is_unsigned ? compare(operation.symbol, left.bits, right.bits)
                             : compare(operation.symbol, static_cast<std::int64_t>(left.bits),
                                       static_cast<std::int64_t>(right.bits)));
}

Constant combine(const TokenCursor& cursor, const Token& operation, const Constant& left, const Constant& right)
{
    if (!left.is_real() && !right.is_real()) {
        return combine_integers(cursor, operation, left, right);
    }
    const unsigned strength = precedence(operation);
    const bool comparison = strength == 6 || strength == 7;
    if (!comparison && (strength < additive || operation.symbol == '%')) {
        require_integer(cursor, operation, left);
        require_integer(cursor, operation, right);
    }
    return combine_reals(cursor, operation, as_real(left), as_real(right));
}

Constant negate(const Constant& value) noexcept
{
    if (!value.is_real()) {
        return {value.kind, Type::none, 0 - value.bits};
    }
    const std::uint64_t sign = value.real_type == Type::f32 ? std::uint64_t{1} << 31 : std::uint64_t{1} << 63;
    return {value.kind, value.real_type, value.bits ^ sign};
}

/// `.5`, which the lexer reads as a modifier.
Constant parse_leading_point(TokenCursor& cursor)
{
    const Token token = cursor.take();
    double value = 0;
    const char* const begin = token.text.data() - 1;
    const char* const end = token.text.data() + token.text.size();
    const auto [stop, error] = std::from_chars(begin, end, value);
    if (error != std::errc{} || stop != end) {
        cursor.fail(fmt::format("{} is not a number", describe(token)), token);
    }
    return real_constant(value);
}

Constant parse_unary(TokenCursor& cursor);
Constant parse_binary(TokenCursor& cursor, unsigned weakest);

/// After '(': a cast such as `(.s64) x`, or an expression and ')'.
Constant parse_parenthesis(TokenCursor& cursor)
{
    const Token type = cursor.current();
    const bool to_signed = cursor.accept_dotted("s64");
    if (to_signed || cursor.accept_dotted("u64")) {
        cursor.expect(')', "after the type of a cast");
        const Constant value = parse_unary(cursor);
        require_integer(cursor, type, value);
        return integer(value.bits, !to_signed);
    }
    const Constant value = parse_constant(cursor);
    cursor.expect(')', "after the expression in parentheses");
    return value;
}

Constant parse_primary(TokenCursor& cursor)
{
    const Token& token = cursor.current();
    switch (token.kind) {
        case Token::Kind::integer: {
            const Token literal = cursor.take();
            return integer(literal.bits, literal.is_unsigned);
        }
        case Token::Kind::real: {
            const Token literal = cursor.take();
            return {Constant::Kind::real, literal.real_type, literal.bits};
        }
        case Token::Kind::word:
            if (cursor.accept_word("WARP_SZ")) {
                return integer(warp_size, false);
            }
            break;
        case Token::Kind::dotted:
            if (token.text.front() >= '0' && token.text.front() <= '9') {
                return parse_leading_point(cursor);
            }
            break;
        default:
            if (cursor.accept('(')) {
                return parse_parenthesis(cursor);
            }
            break;
    }
    cursor.fail_expected("a constant");
}

Constant parse_unary(TokenCursor& cursor)
{
    const TokenCursor::Nesting nesting(cursor);
    const Token operation = cursor.current();
    if (cursor.accept('-')) {
        return negate(parse_unary(cursor));
    }
    if (cursor.accept('+')) {
        return parse_unary(cursor);
    }
    if (cursor.accept('~')) {
        const Constant value = parse_unary(cursor);
        require_integer(cursor, operation, value);
        return integer(~value.bits, true);
    }
    if (cursor.accept('!')) {
        const Constant value = parse_unary(cursor);
        require_integer(cursor, operation, value);
        return truth(value.bits == 0);
    }
    return parse_primary(cursor);
}

Constant parse_binary(TokenCursor& cursor, unsigned weakest)
{
    Constant left = parse_unary(cursor);
    for (;;) {
        const unsigned strength = precedence(cursor.current());
        if (strength == 0 || strength < weakest) {
            return left;
        }
        const Token operation = cursor.take();
        left = combine(cursor, operation, left, parse_binary(cursor, strength + 1));
    }
}

}  // namespace

double Constant::real() const noexcept
{
    return real_type == Type::f32 ? static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))
                                  : std::bit_cast<double>(bits);
}

bool at_constant(const TokenCursor& cursor) noexcept
{
    const Token& token = cursor.current();
    switch (token.kind) {
        case Token::Kind::integer:
        case Token::Kind::real: return true;
        case Token::Kind::word: return token.text == "WARP_SZ";
        case Token::Kind::dotted: return token.text.front() >= '0' && token.text.front() <= '9';
        case Token::Kind::symbol: return std::string_view("(+-~!").find(token.symbol) != std::string_view::npos;
        default: return false;
    }
}

Constant parse_constant(TokenCursor& cursor)
{
    const TokenCursor::Nesting nesting(cursor);
    const Constant condition = parse_binary(cursor, 1);
    const Token operation = cursor.current();
    if (!cursor.accept('?')) {
        return condition;
    }
    require_integer(cursor, operation, condition);
    const Constant if_true = parse_constant(cursor);
    cursor.expect(':', "of the conditional operator");
    const Constant if_false = parse_constant(cursor);
    return condition.bits != 0 ? if_true : if_false;
}

std::int64_t parse_offset(TokenCursor& cursor)
{
    std::uint64_t sum = 0;
    while (cursor.at('+') || cursor.at('-')) {
        const Token sign = cursor.take();
        const Constant term = parse_binary(cursor, multiplicative);
        require_integer(cursor, sign, term);
        sum = sign.symbol == '+' ? sum + term.bits : sum - term.bits;
    }
    return static_cast<std::int64_t>(sum);
}

}  // namespace tessera::emulator::ptx
