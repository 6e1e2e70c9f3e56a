#include "ptx/statements.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>

#include "ptx/constant_expression.hpp"
#include "ptx/functions.hpp"
#include "ptx/operands.hpp"
#include "ptx/variables.hpp"

namespace tessera::emulator::ptx {
namespace {

bool is_blank(char c) noexcept { return c == ' ' || (c >= '\t' && c <= '\r'); }

/// The end of the comment that begins at `position`.
std::size_t end_of_comment(std::string_view text, std::size_t position) noexcept
{
    const bool to_line_end = text[position + 1] == '/';
    const std::size_t end = to_line_end ? text.find('\n', position) : text.find("*/", position + 2);
    if (end == std::string_view::npos) {
        return text.size();
    }
    return to_line_end ? end : end + 2;
}

/// `raw` without comments, with each run of white space as one space.
std::string in_one_line(std::string_view raw)
{
    if (raw.find_first_of("\t\n\r\v\f/") == std::string_view::npos) {
        return std::string(raw);
    }
    std::string line;
    line.reserve(raw.size());
    for (std::size_t i = 0; i < raw.size();) {
        const bool comment = raw[i] == '/' && i + 1 < raw.size() && (raw[i + 1] == '/' || raw[i + 1] == '*');
        if (comment || is_blank(raw[i])) {
            i = comment ? end_of_comment(raw, i) : i + 1;
            if (!line.empty() && line.back() != ' ') {
                line += ' ';
            }
        } else {
            line += raw[i++];
        }
    }
    return line;
}

Instruction parse_instruction(TokenCursor& cursor)
{
    Instruction instruction;
    const Token first = cursor.current();
    instruction.location = cursor.location();
    if (cursor.accept('@')) {
        instruction.guard_negated = cursor.accept('!');
        instruction.guard = cursor.expect_word("the guard predicate after '@'").text;
    }
    instruction.opcode = cursor.expect_word("an instruction").text;
    constexpr std::size_t usual_modifiers = 4;
    if (cursor.at_dotted()) {
        instruction.modifiers.reserve(usual_modifiers);
    }
    while (cursor.at_dotted()) {
        instruction.modifiers.emplace_back(cursor.take().text);
    }
    instruction.operands = parse_operands(cursor, instruction.opcode == "call");
    if (!cursor.at(';')) {
        cursor.fail_expected(instruction.operands.empty() ? "an operand or ';'" : "',' or ';' after an operand");
    }
    // Before moving on: the next token may be much later.
    instruction.text = in_one_line(cursor.between(first, cursor.current()));
    cursor.take();
    return instruction;
}

/// After the label: `.branchtargets a, b;`, `.calltargets f, g;`, `.callprototype (...) _ (...);`.
TargetList parse_target_list(TokenCursor& cursor, const Token& label, const Location& location)
{
    TargetList list;
    list.label = label.text;
    list.location = location;
    const Token directive = cursor.take();
    if (directive.text == "callprototype") {
        list.kind = TargetList::Kind::prototype;
        Function prototype;
        parse_prototype(cursor, prototype);
        list.results = std::move(prototype.results);
        list.parameters = std::move(prototype.parameters);
        list.no_return = prototype.no_return;
    } else {
        list.kind = directive.text == "branchtargets" ? TargetList::Kind::branch : TargetList::Kind::call;
        do {
            list.names.emplace_back(cursor.expect_word("the name of a target").text);
        } while (cursor.accept(','));
    }
    cursor.expect(';', fmt::format("after .{}", directive.text));
    return list;
}

bool at_target_list(const TokenCursor& cursor) noexcept
{
    return cursor.at_dotted("branchtargets") || cursor.at_dotted("calltargets") || cursor.at_dotted("callprototype");
}

void parse_label(TokenCursor& cursor, Block& block)
{
    const Location location = cursor.location();
    const Token name = cursor.take();
    cursor.expect(':', "after a label");
    if (at_target_list(cursor)) {
        block.statements.push_back({parse_target_list(cursor, name, location)});
    } else {
        block.statements.push_back({Label{std::string(name.text), location}});
    }
}

void parse_directive(TokenCursor& cursor, Block& block)
{
    if (declared_space(cursor.current().text)) {
        for (Variable& variable : parse_variables(cursor, {})) {
            block.statements.push_back({std::move(variable)});
        }
    } else if (cursor.accept_dotted("loc")) {
        parse_loc(cursor);
    } else if (cursor.accept_dotted("pragma")) {
        parse_pragma(cursor);
    } else if (at_target_list(cursor)) {
        cursor.fail(fmt::format("'.{}' needs a label before it", cursor.current().text), cursor.current());
    } else {
        cursor.fail(fmt::format("'.{}' has no meaning in the body of a function", cursor.current().text),
                    cursor.current());
    }
}

}  // namespace

Block parse_block(TokenCursor& cursor)
{
    const TokenCursor::Nesting nesting(cursor);
    Block block;
    const Token opening = cursor.expect('{', "before a block");
    while (!cursor.accept('}')) {
        if (cursor.at_word() && cursor.following().kind == Token::Kind::symbol && cursor.following().symbol == ':') {
            parse_label(cursor, block);
        } else if (cursor.at_word() || cursor.at('@')) {
            block.statements.push_back({parse_instruction(cursor)});
        } else if (cursor.at_dotted()) {
            parse_directive(cursor, block);
        } else if (cursor.at('{')) {
            block.statements.push_back({parse_block(cursor)});
        } else if (cursor.at_end()) {
            cursor.fail("the '{' on this line has no '}'", opening);
        } else {
            cursor.fail_expected("an instruction, a label, a declaration or '}'");
        }
    }
    return block;
}

void parse_loc(TokenCursor& cursor)
{
    const auto number = [&](std::string_view what) {
        return static_cast<std::uint32_t>(cursor.expect_integer(what, UINT32_MAX));
    };
    TokenCursor::Source source;
    source.file = number("the file number of .loc");
    source.line = number("the line number of .loc");
    source.column = number("the column of .loc");
    std::optional<TokenCursor::Source> call;
    std::string function;
    std::uint64_t offset = 0;
    while (cursor.accept(',')) {
        if (cursor.accept_word("function_name")) {
            function = cursor.expect_word("the label of a name after function_name").text;
            offset = static_cast<std::uint64_t>(parse_offset(cursor));
        } else if (cursor.accept_word("inlined_at")) {
            call.emplace();
            call->file = number("the file number of inlined_at");
            call->line = number("the line number of inlined_at");
            call->column = number("the column of inlined_at");
        } else {
            cursor.fail_expected("function_name or inlined_at");
        }
    }
    if (call) {
        cursor.set_inlined_source(source, std::move(function), offset, *call);
    } else {
        cursor.set_source(source);
    }
}

void parse_pragma(TokenCursor& cursor)
{
    do {
        (void)cursor.expect_text("a string after .pragma");
    } while (cursor.accept(','));
    cursor.expect(';', "after .pragma");
}

}  // namespace tessera::emulator::ptx
