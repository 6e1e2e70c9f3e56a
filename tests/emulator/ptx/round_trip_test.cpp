// A tree that is printed and parsed again is the same tree, for PTX as compilers write it. Every prefix of such a text
// is refused with an error, and is never misread or a crash.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "print.hpp"
#include "snippets.hpp"

namespace tessera::emulator::ptx {
namespace {

/// The fuzzer's corpus: each file covers a different part of the language.
std::vector<std::string> corpus()
{
    std::vector<std::string> texts;
    for (const auto& entry : std::filesystem::directory_iterator(PTX_CORPUS)) {
        std::ifstream file(entry.path(), std::ios::binary);
        texts.emplace_back(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
    }
    REQUIRE(texts.size() >= 4);
    return texts;
}

}  // namespace

TEST_CASE("a printed tree parses to the same tree")
{
    for (const std::string& text : corpus()) {
        const std::string printed = print(parse(text));
        CHECK(print(parse(printed)) == printed);
        CHECK(printed.size() > text.size() / 4);
    }
}

TEST_CASE("the line count survives comments, strings and carriage returns")
{
    for (std::string text : corpus()) {
        const std::string plain = print(parse(text));
        constexpr std::string_view blanks = "\r/* \n */";
        for (std::size_t at = text.find('\n'); at != std::string::npos; at = text.find('\n', at + 1)) {
            text.insert(at + 1, blanks);  // not before the newline: a comment may end there
            at += blanks.size();
        }
        CHECK(print(parse(text)) == plain);
        const auto lines = static_cast<std::uint32_t>(std::count(text.begin(), text.end(), '\n')) + 1;
        CHECK(error_of(text + "?").starts_with(fmt::format("PTX line {}: ", lines)));
    }
}

TEST_CASE("truncated text is refused, unless it ends after a whole statement")
{
    for (const std::string& text : corpus()) {
        std::size_t refused = 0;
        for (std::size_t length = 0; length < text.size(); ++length) {
            const std::string prefix = text.substr(0, length);
            const std::string error = error_of(prefix);
            if (error.empty()) {
                CHECK(print(parse(prefix)).size() <= print(parse(text)).size());
            } else {
                CHECK(error.starts_with("PTX line "));
                ++refused;
            }
        }
        CHECK(refused > text.size() / 2);
    }
}

}  // namespace tessera::emulator::ptx
