#include "ptx/parser.hpp"

#include <fmt/format.h>

#include <charconv>
#include <utility>

#include "ptx/functions.hpp"
#include "ptx/statements.hpp"
#include "ptx/token_cursor.hpp"
#include "ptx/variables.hpp"

namespace tessera::emulator::ptx {
namespace {

/// Directives at module scope (PTX ISA "Module Directives", "Debugging Directives", "Linking Directives").
class ModuleParser {
public:
    explicit ModuleParser(std::string_view text) : cursor_(text) {}

    Module parse()
    {
        if (!cursor_.at_dotted("version")) {
            cursor_.fail_expected("the directive .version, with which PTX begins");
        }
        while (!cursor_.at_end()) {
            parse_statement();
        }
        require_target();
        module_.inlined = cursor_.take_inlined();
        return std::move(module_);
    }

private:
    void parse_statement()
    {
        if (cursor_.accept_dotted("version")) {
            parse_version();
        } else if (cursor_.accept_dotted("target")) {
            parse_target();
        } else if (cursor_.accept_dotted("address_size")) {
            parse_address_size();
        } else if (cursor_.accept_dotted("file")) {
            parse_file();
        } else if (cursor_.accept_dotted("section")) {
            parse_section();
        } else if (cursor_.accept_dotted("alias")) {
            parse_alias();
        } else if (cursor_.accept_dotted("pragma")) {
            parse_pragma(cursor_);
        } else if (cursor_.accept_dotted("loc")) {
            parse_loc(cursor_);
        } else if (cursor_.at('@') && cursor_.following().symbol == '@') {
            cursor_.skip_line();  // @@DWARF, the debug data of PTX before 2.0
        } else {
            parse_declaration();
        }
    }

    void parse_version()
    {
        const Token number = cursor_.take();
        const char* const begin = number.text.data();
        const char* const end = begin + number.text.size();
        const auto [point, error] = std::from_chars(begin, end, module_.version_major);
        if (number.kind == Token::Kind::real && error == std::errc{} && point != end && *point == '.') {
            const auto [stop, minor_error] = std::from_chars(point + 1, end, module_.version_minor);
            if (minor_error == std::errc{} && stop == end) {
                return;
            }
        }
        cursor_.fail(fmt::format("expected a version such as 9.0 after .version, found {}", describe(number)), number);
    }

    void parse_target()
    {
        module_.target = cursor_.expect_word("an architecture such as sm_100a after .target").text;
        module_.target_options.clear();
        while (cursor_.accept(',')) {
            module_.target_options.emplace_back(cursor_.expect_word("an option of .target").text);
        }
    }

    void parse_address_size()
    {
        const Token token = cursor_.current();
        const std::uint64_t bits = cursor_.expect_integer("32 or 64 after .address_size", UINT32_MAX);
        if (bits != 32 && bits != 64) {
            cursor_.fail(fmt::format("an address has 32 or 64 bits, not {}", bits), token);
        }
        module_.address_size = static_cast<std::uint32_t>(bits);
    }

    /// `.file 1 "kernel.cu", 1700000000, 4711`
    void parse_file()
    {
        const auto number = static_cast<std::uint32_t>(cursor_.expect_integer("the number of a .file", UINT32_MAX));
        module_.files[number] = unescape(cursor_.expect_text("the path of a .file").text);
        while (cursor_.accept(',')) {
            (void)cursor_.expect_integer("the time or size of a .file", UINT64_MAX);
        }
    }

    static std::string unescape(std::string_view text)
    {
        std::string result;
        result.reserve(text.size());
        for (std::size_t i = 0; i < text.size(); ++i) {
            if (text[i] == '\\' && i + 1 < text.size() && (text[i + 1] == '\\' || text[i + 1] == '"')) {
                ++i;
            }
            result += text[i];
        }
        return result;
    }

    void parse_section()
    {
        if (!cursor_.at_dotted()) {
            cursor_.fail_expected("the name of a .section");
        }
        if (cursor_.take().text == "debug_str") {
            parse_debug_strings();
        } else {
            cursor_.skip_braces();
        }
    }

    /// { label: .b8 95,90,0 ... }: names of functions, used only in messages, so anything unexpected is skipped.
    void parse_debug_strings()
    {
        const Token opening = cursor_.expect('{', "after .section .debug_str");
        std::string* bytes = nullptr;
        while (!cursor_.accept('}')) {
            if (cursor_.at_end()) {
                cursor_.fail("the '{' on this line has no '}'", opening);
            }
            const Token token = cursor_.take();
            if (token.kind == Token::Kind::word && cursor_.accept(':')) {
                bytes = &module_.debug_strings[std::string(token.text)];
            } else if (token.kind == Token::Kind::integer && bytes != nullptr) {
                bytes->push_back(static_cast<char>(token.bits));
            }
        }
    }

    void parse_alias()
    {
        const Token alias = cursor_.expect_word("the new name of an .alias");
        cursor_.expect(',', "between the names of an .alias");
        const Token aliasee = cursor_.expect_word("the function that an .alias names");
        cursor_.expect(';', "after .alias");
        module_.aliases[std::string(alias.text)] = aliasee.text;
    }

    Linkage parse_linkage()
    {
        Linkage linkage;
        for (;;) {
            if (cursor_.accept_dotted("extern")) {
                linkage.external = true;
            } else if (cursor_.accept_dotted("visible")) {
                linkage.visible = true;
            } else if (cursor_.accept_dotted("weak")) {
                linkage.weak = true;
            } else if (cursor_.accept_dotted("common")) {
                linkage.common = true;
            } else {
                return linkage;
            }
        }
    }

    void parse_declaration()
    {
        const Linkage linkage = parse_linkage();
        const Token directive = cursor_.current();
        if (cursor_.at_dotted("entry") || cursor_.at_dotted("func")) {
            require_target();
            module_.functions.push_back(parse_function(cursor_, linkage));
            cursor_.forget_sources();
        } else if (cursor_.at_dotted() && declared_space(directive.text)) {
            require_target();
            for (Variable& variable : parse_variables(cursor_, linkage)) {
                if (variable.space == StateSpace::reg || variable.space == StateSpace::param ||
                    variable.space == StateSpace::local) {
                    cursor_.fail(fmt::format("'.{}' is not allowed outside of a function", directive.text), directive);
                }
                module_.variables.push_back(std::move(variable));
            }
        } else if (cursor_.at_dotted()) {
            cursor_.fail(fmt::format("'.{}' is not a directive that is allowed outside of a function", directive.text),
                         directive);
        } else {
            cursor_.fail_expected("a directive");
        }
    }

    void require_target() const
    {
        if (module_.target.empty()) {
            cursor_.fail(".target with the architecture, such as .target sm_100a, is missing", cursor_.current());
        }
    }

    TokenCursor cursor_;
    Module module_;
};

}  // namespace

Module parse(std::string_view text) { return ModuleParser(text).parse(); }

}  // namespace tessera::emulator::ptx
