#include "ptx/initial_values.hpp"

#include <fmt/format.h>

#include <bit>

#include "ptx/constant_expression.hpp"

namespace tessera::emulator::ptx {
namespace {

using InitialValue = Variable::InitialValue;

bool is_real(Type type) noexcept { return type == Type::f32 || type == Type::f64; }

bool is_integer(Type type) noexcept { return type >= Type::b8 && type <= Type::s64; }

[[noreturn]] void fail_mismatch(const TokenCursor& cursor, const Variable& variable, std::string_view what,
                                const Token& token)
{
    cursor.fail(fmt::format("{} cannot be the initial value of '{}', which has type .{}", what, variable.name,
                            name_of(variable.type)),
                token);
}

std::uint64_t real_bits(const TokenCursor& cursor, const Variable& variable, const Constant& value, const Token& token)
{
    switch (variable.type) {
        case Type::f32: return std::bit_cast<std::uint32_t>(static_cast<float>(value.real()));
        case Type::f64: return std::bit_cast<std::uint64_t>(value.real());
        case Type::b32:
            return value.real_type == Type::f32 ? value.bits
                                                : std::bit_cast<std::uint32_t>(static_cast<float>(value.real()));
        case Type::b64: return value.bits;
        default: fail_mismatch(cursor, variable, "a real number", token);
    }
}

std::uint64_t bits_of(const TokenCursor& cursor, const Variable& variable, const Constant& value, const Token& token)
{
    if (value.is_real()) {
        return real_bits(cursor, variable, value, token);
    }
    if (!is_integer(variable.type)) {
        fail_mismatch(cursor, variable, "an integer", token);
    }
    const std::size_t bits = 8 * size_of(variable.type);
    return bits >= 64 ? value.bits : value.bits & ((std::uint64_t{1} << bits) - 1);
}

/// `symbol`, `symbol+4`, `generic(symbol)`, `generic(symbol)+4`.
void parse_symbol(TokenCursor& cursor, InitialValue& value)
{
    const Token name = cursor.expect_word("the name of a variable or function");
    if (name.text == "generic" && cursor.accept('(')) {
        value.generic = true;
        value.symbol = cursor.expect_word("the name of a variable or function").text;
        cursor.expect(')', "after the name");
    } else {
        value.symbol = name.text;
    }
    value.bits = static_cast<std::uint64_t>(parse_offset(cursor));
}

/// The rest of `0xFF00(symbol)`: one byte of an address.
void parse_masked_symbol(TokenCursor& cursor, const Constant& mask, const Token& token, InitialValue& value)
{
    const int shift = mask.bits == 0 ? 0 : std::countr_zero(mask.bits);
    if (mask.is_real() || shift % 8 != 0 || mask.bits >> shift != 0xFF) {
        cursor.fail(fmt::format("the mask {} does not select one byte of an address, as 0xFF00 does", token.text),
                    token);
    }
    value.masked = true;
    value.mask_shift = static_cast<std::uint8_t>(shift);
    cursor.expect('(', "after the mask");
    parse_symbol(cursor, value);
    cursor.expect(')', "after the masked address");
}

InitialValue parse_value(TokenCursor& cursor, const Variable& variable)
{
    InitialValue value;
    const Token token = cursor.current();
    if (at_constant(cursor)) {
        const Constant constant = parse_constant(cursor);
        if (cursor.at('(')) {
            parse_masked_symbol(cursor, constant, token, value);
        } else {
            value.bits = bits_of(cursor, variable, constant, token);
            return value;
        }
    } else if (cursor.at_word()) {
        parse_symbol(cursor, value);
    } else {
        cursor.fail_expected(fmt::format("an initial value of '{}'", variable.name));
    }
    if (!is_integer(variable.type) || (!value.masked && size_of(variable.type) < 4)) {
        fail_mismatch(cursor, variable, value.masked ? "a byte of an address" : "an address", token);
    }
    return value;
}

/// Values in braces, level by level of an array (and of a vector within).
class Braces {
public:
    Braces(TokenCursor& cursor, Variable& variable) : cursor_(cursor), variable_(variable), extents_(variable.extents)
    {
        if (variable.vector_width > 1) {
            extents_.push_back(variable.vector_width);
        }
        strides_.assign(extents_.size(), 1);
        for (std::size_t level = extents_.size(); level-- > 1;) {
            strides_[level - 1] = strides_[level] * extents_[level];
        }
    }

    /// Fills from element `first` on.
    void parse(std::size_t level, std::uint64_t first)
    {
        if (level == extents_.size()) {
            variable_.initial.push_back(parse_value(cursor_, variable_));
            return;
        }
        const TokenCursor::Nesting nesting(cursor_);
        cursor_.expect('{', fmt::format("before the initial values of '{}'", variable_.name));
        if (level == 0 && cursor_.accept('}')) {
            return;  // all zero
        }
        const bool open_ended = level == 0 && variable_.is_array && variable_.extents.front() == 0;
        std::uint64_t count = 0;
        do {
            if (!open_ended && count == extents_[level]) {
                cursor_.fail(fmt::format("more than {} initial values for '{}'", count, variable_.name),
                             cursor_.current());
            }
            require_full_rows(first + count * strides_[level]);
            parse(level + 1, first + count * strides_[level]);
            ++count;
        } while (cursor_.accept(','));
        cursor_.expect('}', "after the initial values");
        if (open_ended) {
            variable_.extents.front() = count;
        }
    }

private:
    /// The PTX ISA fills incomplete rows with zeros, but ptxas moves the next row's values up. Refuse them.
    void require_full_rows(std::uint64_t element)
    {
        if (variable_.initial.size() != element) {
            cursor_.fail(fmt::format("the previous row gives {} of the first {} values of '{}': give every value",
                                     variable_.initial.size(), element, variable_.name),
                         cursor_.current());
        }
    }

    TokenCursor& cursor_;
    Variable& variable_;
    std::vector<std::uint64_t> extents_, strides_;
};

}  // namespace

void parse_initial_values(TokenCursor& cursor, Variable& variable)
{
    if (variable.type == Type::texref || variable.type == Type::samplerref || variable.type == Type::surfref) {
        cursor.skip_braces();
        return;
    }
    if (variable.type == Type::pred || (!is_integer(variable.type) && !is_real(variable.type))) {
        cursor.fail(fmt::format("'{}' of type .{} cannot have an initial value", variable.name, name_of(variable.type)),
                    cursor.current());
    }
    Braces(cursor, variable).parse(0, 0);
}

}  // namespace tessera::emulator::ptx
