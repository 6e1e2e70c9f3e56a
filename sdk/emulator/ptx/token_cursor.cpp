#include "ptx/token_cursor.hpp"

#include <fmt/format.h>

namespace tessera::emulator::ptx {

const Token& TokenCursor::following()
{
    if (!following_) {
        following_ = lexer_.next();
    }
    return *following_;
}

Token TokenCursor::take()
{
    const Token taken = current_;
    if (following_) {
        current_ = *following_;
        following_.reset();
    } else {
        current_ = lexer_.next();
    }
    return taken;
}

bool TokenCursor::accept(char symbol)
{
    const bool here = at(symbol);
    if (here) {
        take();
    }
    return here;
}

bool TokenCursor::accept_word(std::string_view word)
{
    const bool here = at_word(word);
    if (here) {
        take();
    }
    return here;
}

bool TokenCursor::accept_dotted(std::string_view name)
{
    const bool here = at_dotted(name);
    if (here) {
        take();
    }
    return here;
}

Token TokenCursor::expect(char symbol, std::string_view context)
{
    if (!at(symbol)) {
        fail_expected(fmt::format("'{}' {}", symbol, context));
    }
    return take();
}

Token TokenCursor::expect_word(std::string_view what)
{
    if (!at_word()) {
        fail_expected(what);
    }
    return take();
}

Token TokenCursor::expect_text(std::string_view what)
{
    if (current_.kind != Token::Kind::text) {
        fail_expected(what);
    }
    return take();
}

std::uint64_t TokenCursor::expect_integer(std::string_view what, std::uint64_t limit)
{
    if (current_.kind != Token::Kind::integer) {
        fail_expected(what);
    }
    if (current_.bits > limit) {
        fail(fmt::format("{} is {}, but at most {} is allowed", what, current_.bits, limit), current_);
    }
    return take().bits;
}

void TokenCursor::skip_braces()
{
    // A token read ahead would already be inside the braces.
    if (!at('{') || following_) {
        fail_expected("'{'");
    }
    lexer_.skip_braces(current_);
    current_ = lexer_.next();
}

void TokenCursor::skip_line()
{
    following_.reset();
    lexer_.skip_line();
    current_ = lexer_.next();
}

void TokenCursor::set_source(const Source& source)
{
    source_ = source;
    inlined_ = 0;
    inlined_at_[source] = 0;
}

void TokenCursor::set_inlined_source(const Source& source, std::string function, std::uint64_t offset,
                                     const Source& call)
{
    const auto caller = inlined_at_.find(call);
    InlinedCall inlined{std::move(function), offset, call.file, call.line,
                        caller == inlined_at_.end() ? 0 : caller->second};
    const auto [number, fresh] =
        numbers_.try_emplace(std::move(inlined), static_cast<std::uint32_t>(inlined_calls_.size() + 1));
    if (fresh) {
        inlined_calls_.push_back(number->first);
    }
    source_ = source;
    inlined_ = number->second;
    inlined_at_[source] = inlined_;
}

void TokenCursor::forget_sources()
{
    source_ = {};
    inlined_ = 0;
    inlined_at_.clear();
}

void TokenCursor::fail_expected(std::string_view what) const
{
    fail(fmt::format("expected {}, found {}", what, describe(current_)), current_);
}

TokenCursor::Nesting::Nesting(TokenCursor& cursor) : cursor_(cursor)
{
    if (cursor_.depth_ == max_depth) {
        cursor_.fail(fmt::format("nested more than {} levels deep", max_depth), cursor_.current_);
    }
    ++cursor_.depth_;
}

}  // namespace tessera::emulator::ptx
