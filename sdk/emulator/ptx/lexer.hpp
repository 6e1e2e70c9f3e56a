#pragma once

// From PTX text to tokens (PTX ISA "Syntax").

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "ptx/ast.hpp"

namespace tessera::emulator::ptx {

/// Operators of two characters. A symbol of one character is the character itself.
enum Symbol : char {
    symbol_none = 0,
    symbol_shift_left = 'l',
    symbol_shift_right = 'r',
    symbol_equal = 'e',
    symbol_unequal = 'n',
    symbol_less_equal = 'm',
    symbol_greater_equal = 'g',
    symbol_and = 'a',
    symbol_or = 'o',
};

struct Token {
    enum class Kind : std::uint8_t {
        end,
        word,     ///< identifier or opcode: %r1, $L__BB0_1, mov, _
        dotted,   ///< directive, type or modifier; `text` is the part after the dot: u32, shared::cta, 32x32b
        integer,  ///< `bits`
        real,     ///< `bits`, `real_type`
        text,     ///< "..."; `text` is the part between the quotes, escapes as written
        symbol,   ///< punctuation: `symbol`
    };
    Kind kind = Kind::end;
    char symbol = symbol_none;
    Type real_type = Type::none;  ///< f32 for 0f..., f64 otherwise
    bool is_unsigned = false;     ///< of an integer: suffix U, or too large for 63 bits
    std::uint32_t line = 0;
    std::uint64_t bits = 0;
    std::string_view text;  ///< part of the PTX text
};

/// Reads tokens one after the other. Comments and white space only separate tokens.
class Lexer {
public:
    /// `text` must outlive the lexer and its tokens. Trailing zero bytes are ignored.
    explicit Lexer(std::string_view text);

    /// The next token; at the end always Kind::end.
    /// @throws ParseError for a character, number, string or comment that is not PTX
    [[nodiscard]] Token next();

    /// Continues after the `}` that closes the `{` just read, without reading the tokens between. Debug sections have
    /// megabytes that are not used.
    void skip_braces(const Token& opening);

    /// Continues after the end of this line.
    void skip_line() noexcept;

    /// The text from the beginning of `first` to the end of `last`.
    [[nodiscard]] std::string_view between(const Token& first, const Token& last) const noexcept;

    /// @throws ParseError with `message`, the line of `token` and its text
    [[noreturn]] void fail(const std::string& message, const Token& token) const;

private:
    void skip_blanks();
    void skip_comment();
    void read_word(Token& token) noexcept;
    void read_dotted(Token& token);
    void read_number(Token& token);
    void read_bit_pattern(Token& token, std::size_t digits, Type type);
    void read_digits(Token& token, unsigned base, std::size_t begin);
    void read_decimal(Token& token);
    void read_string(Token& token);
    void read_symbol(Token& token);
    void finish_number(Token& token);
    [[nodiscard]] char peek(std::size_t ahead = 0) const noexcept
    {
        return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
    }

    std::string_view text_;
    std::size_t position_ = 0;
    std::uint32_t line_ = 1;
};

/// `token` in the words of a message: "'add'", "the end of the text".
[[nodiscard]] std::string describe(const Token& token);

}  // namespace tessera::emulator::ptx
