#include "ptx/lexer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>

#include "ptx/parser.hpp"

namespace tessera::emulator::ptx {
namespace {

/// Longest part of a line, token or sentence in a message: names can have any length.
constexpr std::size_t shown_characters = 160;
constexpr std::size_t shown_sentence = 400;

constexpr unsigned word_start = 1, word_part = 2, digit = 4, hex_digit = 8, alphanumeric = 16;

constexpr std::array<std::uint8_t, 256> make_classes()
{
    std::array<std::uint8_t, 256> classes{};
    for (unsigned c = 0; c < 256; ++c) {
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        const bool decimal = c >= '0' && c <= '9';
        unsigned bits = 0;
        bits |= letter || c == '_' || c == '$' || c == '%' ? word_start : 0U;
        bits |= letter || decimal || c == '_' || c == '$' ? word_part : 0U;
        bits |= decimal ? digit : 0U;
        bits |= decimal || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') ? hex_digit : 0U;
        bits |= letter || decimal || c == '_' ? alphanumeric : 0U;
        classes[c] = static_cast<std::uint8_t>(bits);
    }
    return classes;
}

constexpr std::array<std::uint8_t, 256> classes = make_classes();

bool is(char c, unsigned which) noexcept { return (classes[static_cast<unsigned char>(c)] & which) != 0; }

unsigned digit_value(char c) noexcept
{
    if (c >= '0' && c <= '9') {
        return static_cast<unsigned>(c - '0');
    }
    return static_cast<unsigned>((c | 0x20) - 'a') + 10U;
}

/// Printable text: one line, no control characters, not too long for a message.
std::string printable(std::string_view text, std::size_t limit = shown_characters)
{
    std::string shown(text.substr(0, limit));
    for (char& c : shown) {
        if (c == '\t') {
            c = ' ';
        } else if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) > 0x7e) {
            c = '?';
        }
    }
    if (text.size() > limit) {
        shown += "...";
    }
    return shown;
}

char two_character_symbol(char first, char second) noexcept
{
    switch (first) {
        case '<': return second == '<' ? symbol_shift_left : second == '=' ? symbol_less_equal : symbol_none;
        case '>': return second == '>' ? symbol_shift_right : second == '=' ? symbol_greater_equal : symbol_none;
        case '=': return second == '=' ? symbol_equal : symbol_none;
        case '!': return second == '=' ? symbol_unequal : symbol_none;
        case '&': return second == '&' ? symbol_and : symbol_none;
        case '|': return second == '|' ? symbol_or : symbol_none;
        default: return symbol_none;
    }
}

}  // namespace

std::string describe(const Token& token)
{
    switch (token.kind) {
        case Token::Kind::end: return "the end of the text";
        case Token::Kind::dotted: return fmt::format("'.{}'", printable(token.text));
        case Token::Kind::text: return fmt::format("the string \"{}\"", printable(token.text));
        default: return fmt::format("'{}'", printable(token.text));
    }
}

Lexer::Lexer(std::string_view text) : text_(text)
{
    while (!text_.empty() && text_.back() == '\0') {
        text_.remove_suffix(1);
    }
}

void Lexer::fail(const std::string& message, const Token& token) const
{
    // An end token has no text; its line is the last one.
    const std::size_t offset =
        token.text.data() != nullptr ? static_cast<std::size_t>(token.text.data() - text_.data()) : text_.size();
    const std::size_t last_newline = offset == 0 ? std::string_view::npos : text_.rfind('\n', offset - 1);
    const std::size_t begin = last_newline == std::string_view::npos ? 0 : last_newline + 1;
    std::string_view line = text_.substr(begin, text_.find('\n', offset) - begin);
    const std::size_t first_ink = line.find_first_not_of(" \t\r");
    line.remove_prefix(std::min(first_ink, line.size()));
    throw ParseError(
        fmt::format("PTX line {}: {}: {}", token.line, printable(message, shown_sentence), printable(line)),
        Location{token.line});
}

void Lexer::skip_comment()
{
    if (peek(1) == '/') {
        position_ = std::min(text_.find('\n', position_), text_.size());
        return;
    }
    const std::size_t end = text_.find("*/", position_ + 2);
    if (end == std::string_view::npos) {
        Token opening;
        opening.line = line_;
        opening.text = text_.substr(position_, 2);
        fail("the comment that begins here has no end", opening);
    }
    line_ += static_cast<std::uint32_t>(std::count(text_.begin() + static_cast<std::ptrdiff_t>(position_),
                                                   text_.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
    position_ = end + 2;
}

void Lexer::skip_blanks()
{
    while (position_ < text_.size()) {
        switch (text_[position_]) {
            case '\n': ++line_; [[fallthrough]];
            case ' ':
            case '\t':
            case '\r':
            case '\v':
            case '\f': ++position_; break;
            case '/':
                if (peek(1) != '/' && peek(1) != '*') {
                    return;
                }
                skip_comment();
                break;
            default: return;
        }
    }
}

Token Lexer::next()
{
    skip_blanks();
    Token token;
    token.line = line_;
    if (position_ == text_.size()) {
        return token;
    }
    token.text = text_.substr(position_, 1);
    const char c = text_[position_];
    const bool lone_sigil = (c == '%' || c == '$') && !is(peek(1), word_part);
    if (is(c, word_start) && !lone_sigil) {
        read_word(token);
    } else if (is(c, digit)) {
        read_number(token);
    } else if (c == '.') {
        read_dotted(token);
    } else if (c == '"') {
        read_string(token);
    } else {
        read_symbol(token);
    }
    return token;
}

void Lexer::read_word(Token& token) noexcept
{
    const std::size_t begin = position_++;
    while (is(peek(), word_part)) {
        ++position_;
    }
    token.kind = Token::Kind::word;
    token.text = text_.substr(begin, position_ - begin);
}

void Lexer::read_dotted(Token& token)
{
    const std::size_t begin = ++position_;
    while (is(peek(), alphanumeric)) {
        ++position_;
    }
    if (position_ == begin) {
        fail("expected a name after '.'", token);
    }
    while (peek() == ':' && peek(1) == ':' && is(peek(2), alphanumeric)) {
        position_ += 2;
        while (is(peek(), alphanumeric)) {
            ++position_;
        }
    }
    token.kind = Token::Kind::dotted;
    token.text = text_.substr(begin, position_ - begin);
}

void Lexer::read_bit_pattern(Token& token, std::size_t digits, Type type)
{
    const std::size_t begin = position_;
    token.kind = Token::Kind::real;
    token.real_type = type;
    position_ += 2;
    for (std::size_t i = 0; i < digits; ++i, ++position_) {
        if (!is(peek(), hex_digit)) {
            token.text = text_.substr(begin, position_ - begin);
            fail(fmt::format("{} has {} hexadecimal digits, found {}", describe(token), digits, i), token);
        }
        token.bits = token.bits << 4 | digit_value(peek());
    }
    token.text = text_.substr(begin, position_ - begin);
    finish_number(token);
}

/// A number must not be followed directly by a name: 12abc is invalid.
void Lexer::finish_number(Token& token)
{
    if (is(peek(), word_part)) {
        const auto begin = static_cast<std::size_t>(token.text.data() - text_.data());
        while (is(peek(), word_part)) {
            ++position_;
        }
        token.text = text_.substr(begin, position_ - begin);
        fail(fmt::format("{} is not a number", describe(token)), token);
    }
}

void Lexer::read_digits(Token& token, unsigned base, std::size_t begin)
{
    const std::size_t first = position_;
    bool overflow = false;
    while (is(peek(), hex_digit) && digit_value(peek()) < base) {
        const unsigned value = digit_value(peek());
        overflow = overflow || token.bits > (UINT64_MAX - value) / base;
        token.bits = token.bits * base + value;
        ++position_;
    }
    token.kind = Token::Kind::integer;
    token.is_unsigned = token.bits > INT64_MAX;
    const bool empty = position_ == first;
    if (peek() == 'U') {
        token.is_unsigned = true;
        ++position_;
    }
    token.text = text_.substr(begin, position_ - begin);
    finish_number(token);
    if (empty) {
        fail(fmt::format("{} is not a number", describe(token)), token);
    }
    if (overflow) {
        fail(fmt::format("{} does not fit into 64 bits", describe(token)), token);
    }
}

void Lexer::read_decimal(Token& token)
{
    const std::size_t begin = position_;
    const auto skip_digits = [this] {
        while (is(peek(), digit)) {
            ++position_;
        }
    };
    skip_digits();
    if (peek() == '.') {
        ++position_;
        skip_digits();
    }
    if ((peek() | 0x20) == 'e') {
        ++position_;
        if (peek() == '+' || peek() == '-') {
            ++position_;
        }
        skip_digits();
    }
    token.kind = Token::Kind::real;
    token.real_type = Type::f64;
    token.text = text_.substr(begin, position_ - begin);
    finish_number(token);
    double value = 0;
    const char* const end = token.text.data() + token.text.size();
    const auto [stop, error] = std::from_chars(token.text.data(), end, value);
    if (error == std::errc::result_out_of_range) {
        fail(fmt::format("{} is outside of the range of f64", describe(token)), token);
    }
    if (error != std::errc{} || stop != end) {
        fail(fmt::format("{} is not a number", describe(token)), token);
    }
    token.bits = std::bit_cast<std::uint64_t>(value);
}

void Lexer::read_number(Token& token)
{
    const std::size_t begin = position_;
    if (text_[position_] == '0') {
        switch (peek(1)) {
            case 'f':
            case 'F': read_bit_pattern(token, 8, Type::f32); return;
            case 'd':
            case 'D': read_bit_pattern(token, 16, Type::f64); return;
            case 'x':
            case 'X':
                position_ += 2;
                read_digits(token, 16, begin);
                return;
            case 'b':
            case 'B':
                position_ += 2;
                read_digits(token, 2, begin);
                return;
            default: break;
        }
    }
    std::size_t ahead = 1;
    while (is(peek(ahead), digit)) {
        ++ahead;
    }
    if (peek(ahead) == '.' || (peek(ahead) | 0x20) == 'e') {
        read_decimal(token);
        return;
    }
    read_digits(token, text_[position_] == '0' ? 8 : 10, begin);
}

void Lexer::read_string(Token& token)
{
    const std::size_t begin = ++position_;
    while (peek() != '"') {
        if (position_ >= text_.size() || peek() == '\n') {
            fail("the string that begins here has no end", token);
        }
        position_ += peek() == '\\' && position_ + 1 < text_.size() && peek(1) != '\n' ? 2U : 1U;
    }
    token.kind = Token::Kind::text;
    token.text = text_.substr(begin, position_ - begin);
    ++position_;
}

void Lexer::read_symbol(Token& token)
{
    const char c = text_[position_];
    token.kind = Token::Kind::symbol;
    token.symbol = two_character_symbol(c, peek(1));
    if (token.symbol != symbol_none) {
        token.text = text_.substr(position_, 2);
    } else if (std::string_view(",;:()[]{}<>+-*/%&|^~!?=@").find(c) != std::string_view::npos) {
        token.symbol = c;
    } else {
        fail(fmt::format("unexpected character {}", describe(token)), token);
    }
    position_ += token.text.size();
}

void Lexer::skip_braces(const Token& opening)
{
    for (std::size_t depth = 1; depth > 0;) {
        skip_blanks();
        if (position_ == text_.size()) {
            fail("the '{' on this line has no '}'", opening);
        }
        const char c = text_[position_];
        if (c == '"') {
            Token ignored;
            ignored.line = line_;
            ignored.text = text_.substr(position_, 1);
            read_string(ignored);
            continue;
        }
        depth += c == '{' ? 1U : 0U;
        depth -= c == '}' ? 1U : 0U;
        ++position_;
    }
}

void Lexer::skip_line() noexcept { position_ = std::min(text_.find('\n', position_), text_.size()); }

std::string_view Lexer::between(const Token& first, const Token& last) const noexcept
{
    const auto begin = static_cast<std::size_t>(first.text.data() - text_.data());
    const auto end = static_cast<std::size_t>(last.text.data() - text_.data()) + last.text.size();
    return text_.substr(begin, end - begin);
}

}  // namespace tessera::emulator::ptx
