#include "runtime/ptx_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <vector>

namespace tessera::emulator {

namespace {

enum class Kind { directive, variable, function };

/// A statement at module scope: a directive on its own line, a variable, or a function with or without body.
struct Statement {
    std::string text;
    Kind kind = Kind::directive;
    std::string linkage;  ///< ".extern", ".visible", ".weak", ".common", or empty
    std::string name;     ///< empty for directives
    bool has_body = false;
};

bool is_name_character(char c)
{
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%';
}

/// Names and directives (with their dot) of `text`, up to the first '=' or '{'.
std::vector<std::string> words_of(std::string_view text)
{
    std::vector<std::string> words;
    for (std::size_t i = 0; i < text.size() && text[i] != '=' && text[i] != '{';) {
        if (text[i] == '.' || is_name_character(text[i])) {
            std::size_t end = i + 1;
            while (end < text.size() && is_name_character(text[end])) {
                ++end;
            }
            words.emplace_back(text.substr(i, end - i));
            i = end;
        } else {
            words.emplace_back(1, text[i]);
            ++i;
        }
    }
    std::erase_if(words,
                  [](const std::string& word) { return std::isspace(static_cast<unsigned char>(word[0])) != 0; });
    return words;
}

/// The function's name follows the directive, and the return parameters if there are any.
std::string function_name(const std::vector<std::string>& words, std::size_t after)
{
    if (after < words.size() && words[after] == "(") {
        after = static_cast<std::size_t>(std::ranges::find(words.begin() + static_cast<std::ptrdiff_t>(after),
                                                           words.end(), std::string(")")) -
                                         words.begin()) +
                1;
    }
    // Attributes such as ".noreturn" may come in between.
    while (after < words.size() && words[after][0] == '.') {
        ++after;
    }
    return after < words.size() ? words[after] : std::string();
}

/// The last name before '[' or the end: ".global .align 4 .b8 table[16]".
std::string variable_name(const std::vector<std::string>& words)
{
    std::string name;
    for (const std::string& word : words) {
        if (word == "[" || word == ";") {
            break;
        }
        if (word[0] != '.') {
            name = word;
        }
    }
    return name;
}

Statement classify(std::string text)
{
    Statement statement;
    const std::vector<std::string> words = words_of(text);
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == ".extern" || word == ".visible" || word == ".weak" || word == ".common") {
            statement.linkage = word;
        } else if (word == ".func" || word == ".entry") {
            statement.kind = Kind::function;
            statement.name = function_name(words, i + 1);
            break;
        } else if (word == ".global" || word == ".const" || word == ".shared") {
            statement.kind = Kind::variable;
            statement.name = variable_name(words);
            break;
        }
    }
    statement.has_body = statement.kind == Kind::function && text.find('{') != std::string::npos;
    statement.text = std::move(text);
    return statement;
}

std::string without_comments(std::string_view text)
{
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
        if (text.substr(i, 2) == "//") {
            i = std::min(text.find('\n', i), text.size());
        } else if (text.substr(i, 2) == "/*") {
            const std::size_t end = text.find("*/", i);
            i = end == std::string_view::npos ? text.size() : end + 2;
        } else if (text[i] == '"') {
            const std::size_t end = std::min(text.find('"', i + 1), text.size() - 1);
            result += text.substr(i, end + 1 - i);
            i = end + 1;
        } else {
            result += text[i++];
        }
    }
    return result;
}

bool is_line_directive(std::string_view text)
{
    return std::ranges::any_of(std::to_array<std::string_view>({".version", ".target", ".address_size", ".file"}),
                               [&](std::string_view directive) { return text.starts_with(directive); });
}

std::vector<Statement> split(std::string_view unit)
{
    const std::string text = without_comments(unit);
    std::vector<Statement> statements;
    std::size_t start = 0;
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (depth == 0 && start == i && std::isspace(static_cast<unsigned char>(text[i])) != 0) {
            ++start;
            continue;
        }
        if (start == i && is_line_directive(std::string_view(text).substr(i))) {
            const std::size_t end = std::min(text.find('\n', i), text.size());
            Statement directive;
            directive.text = text.substr(start, end - start);
            statements.push_back(std::move(directive));
            i = end;
            start = i + 1;
            continue;
        }
        depth += text[i] == '{' ? 1 : text[i] == '}' ? -1 : 0;
        const bool ends_function = text[i] == '}' && depth == 0 &&
                                   std::string_view(text).substr(start, i - start).find('=') == std::string_view::npos;
        const bool ends_body = ends_function || (text[i] == '}' && depth == 0 &&
                                                 classify(text.substr(start, i + 1 - start)).kind == Kind::function);
        if (ends_body || (text[i] == ';' && depth == 0)) {
            statements.push_back(classify(text.substr(start, i + 1 - start)));
            start = i + 1;
        }
    }
    return statements;
}

/// `text` with whole names replaced.
std::string rename(std::string_view text, const std::map<std::string, std::string>& names)
{
    std::string result;
    for (std::size_t i = 0; i < text.size();) {
        std::size_t end = i;
        while (end < text.size() && is_name_character(text[end])) {
            ++end;
        }
        if (end == i) {
            result += text[i++];
            continue;
        }
        const std::string word(text.substr(i, end - i));
        const auto found = names.find(word);
        result += found == names.end() ? word : found->second;
        i = end;
    }
    return result;
}

/// Each unit numbers its source files from 1: makes the numbers after ".file", ".loc" and "inlined_at" distinct.
std::string renumber_files(const std::string& text, std::size_t unit)
{
    constexpr std::size_t files_per_unit = 100000;
    struct Place {
        std::string_view word;
        std::size_t next;
    };
    std::array<Place, 3> places{{{".file", 0}, {".loc", 0}, {"inlined_at", 0}}};
    for (Place& place : places) {
        place.next = text.find(place.word);
    }
    std::string result;
    std::size_t from = 0;
    while (true) {
        Place& first = *std::ranges::min_element(places, {}, &Place::next);
        if (first.next == std::string::npos) {
            return result + text.substr(from);
        }
        const std::size_t after = first.next + first.word.size();
        first.next = text.find(first.word, after);
        const std::size_t number = std::min(text.find_first_not_of(" \t", after), text.size());
        const std::size_t end = std::min(text.find_first_not_of("0123456789", number), text.size());
        std::size_t file = 0;
        const std::errc error = std::from_chars(text.data() + number, text.data() + end, file).ec;
        result += text.substr(from, number - from);
        if (error == std::errc() && file < files_per_unit) {
            result += std::to_string(unit * files_per_unit + file);
        } else {  // not the number of a file
            result += text.substr(number, end - number);
        }
        from = end;
    }
}

}  // namespace

std::string link_ptx(std::span<const std::string> units)
{
    std::vector<std::vector<Statement>> parts;
    std::map<std::string, std::size_t> owners;  // of names without linkage: the first unit
    std::set<std::string> defined;
    for (std::size_t unit = 0; unit < units.size(); ++unit) {
        std::vector<Statement> statements = split(renumber_files(units[unit], unit));
        std::map<std::string, std::string> names;
        for (const Statement& statement : statements) {
            if (!statement.name.empty() && statement.linkage.empty() &&
                owners.emplace(statement.name, unit).first->second != unit) {
                names[statement.name] = fmt::format("{}$unit{}", statement.name, unit);
            }
        }
        for (Statement& statement : statements) {
            if (!names.empty()) {
                statement = classify(rename(statement.text, names));
            }
            if (statement.has_body || (statement.kind == Kind::variable && statement.linkage != ".extern")) {
                defined.insert(statement.name);
            }
        }
        parts.push_back(std::move(statements));
    }

    std::string head;
    std::string prototypes;
    std::string variables;
    std::string functions;
    std::set<std::string> written;
    for (std::size_t unit = 0; unit < parts.size(); ++unit) {
        for (const Statement& statement : parts[unit]) {
            const bool is_external = statement.linkage == ".extern";
            if (statement.kind == Kind::directive) {
                if (unit == 0 || statement.text.starts_with(".file")) {
                    head += statement.text + "\n";
                }
            } else if (is_external && defined.contains(statement.name)) {
                if (statement.kind == Kind::function) {
                    prototypes += ".visible" + statement.text.substr(statement.text.find(".extern") + 7) + "\n";
                }
            } else if (statement.kind == Kind::function && !statement.has_body) {
                if (!is_external || written.insert(statement.name).second) {
                    prototypes += statement.text + "\n";
                }
            } else if ((statement.linkage == ".weak" || statement.linkage == ".common" || is_external) &&
                       !written.insert(statement.name).second) {
                continue;
            } else {
                (statement.kind == Kind::variable ? variables : functions) += statement.text + "\n";
            }
        }
    }
    return head + prototypes + variables + functions;
}

}  // namespace tessera::emulator
