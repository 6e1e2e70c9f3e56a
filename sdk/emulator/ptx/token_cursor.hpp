#pragma once

// The parser's position in the tokens, and the source line of the last `.loc`.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ptx/ast.hpp"
#include "ptx/lexer.hpp"

namespace tessera::emulator::ptx {

class TokenCursor {
public:
    explicit TokenCursor(std::string_view text) : lexer_(text), current_(lexer_.next()) {}

    [[nodiscard]] const Token& current() const noexcept { return current_; }
    /// The token after the current one.
    [[nodiscard]] const Token& following();
    /// Returns the current token and moves on.
    Token take();

    [[nodiscard]] bool at(char symbol) const noexcept
    {
        return current_.kind == Token::Kind::symbol && current_.symbol == symbol;
    }
    [[nodiscard]] bool at_end() const noexcept { return current_.kind == Token::Kind::end; }
    [[nodiscard]] bool at_word() const noexcept { return current_.kind == Token::Kind::word; }
    [[nodiscard]] bool at_word(std::string_view word) const noexcept { return at_word() && current_.text == word; }
    [[nodiscard]] bool at_dotted() const noexcept { return current_.kind == Token::Kind::dotted; }
    [[nodiscard]] bool at_dotted(std::string_view name) const noexcept { return at_dotted() && current_.text == name; }

    /// Moves on if the current token is this one.
    bool accept(char symbol);
    bool accept_word(std::string_view word);
    bool accept_dotted(std::string_view name);

    /// `context` completes the message "expected ';' <context>, found 'add'".
    Token expect(char symbol, std::string_view context);
    /// An identifier; `what` completes "expected <what>, found '+'".
    Token expect_word(std::string_view what);
    Token expect_text(std::string_view what);
    /// A literal of at most `limit`.
    std::uint64_t expect_integer(std::string_view what, std::uint64_t limit);

    /// Moves on past the `}` that matches the current `{`, or past the end of the current line.
    void skip_braces();
    void skip_line();

    /// The current token's line, and the source line that was last set.
    [[nodiscard]] Location location() const noexcept { return {current_.line, source_.file, source_.line, inlined_}; }
    /// A place in the source, as .loc names it.
    struct Source {
        std::uint32_t file = 0, line = 0, column = 0;
        friend auto operator<=>(const Source&, const Source&) = default;
    };
    /// Sets the source line of what follows.
    void set_source(const Source& source);
    /// The same for code that was inlined for a call at `call`. The call's place is the last .loc with these
    /// coordinates, and may itself be inlined.
    void set_inlined_source(const Source& source, std::string function, std::uint64_t offset, const Source& call);
    /// The function ends: the source of what follows is unknown.
    void forget_sources();
    /// The calls of all inlined sources, by number from 1.
    [[nodiscard]] std::vector<InlinedCall> take_inlined() { return std::move(inlined_calls_); }

    [[nodiscard]] std::string_view between(const Token& first, const Token& last) const noexcept
    {
        return lexer_.between(first, last);
    }

    /// @throws ParseError "expected <what>, found <the current token>"
    [[noreturn]] void fail_expected(std::string_view what) const;
    /// @throws ParseError at `token`
    [[noreturn]] void fail(const std::string& message, const Token& token) const { lexer_.fail(message, token); }

    /// Limits the depth of nesting, so that no text can exhaust the stack.
    class Nesting {
    public:
        explicit Nesting(TokenCursor& cursor);
        ~Nesting() { --cursor_.depth_; }
        Nesting(const Nesting&) = delete;
        Nesting& operator=(const Nesting&) = delete;

    private:
        TokenCursor& cursor_;
    };

private:
    static constexpr unsigned max_depth = 200;

    Lexer lexer_;
    Token current_;
    std::optional<Token> following_;
    unsigned depth_ = 0;
    Source source_;
    std::uint32_t inlined_ = 0;
    std::vector<InlinedCall> inlined_calls_;
    std::map<InlinedCall, std::uint32_t> numbers_;  // of inlined_calls_
    std::map<Source, std::uint32_t> inlined_at_;    // in this function: the value of inlined_ at each place
};

}  // namespace tessera::emulator::ptx
