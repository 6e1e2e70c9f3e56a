#include "report/json_text.hpp"

#include <fmt/format.h>

#include <cmath>

namespace tessera::bench {

std::string text_value(std::string_view text)
{
    std::string result = "\"";
    for (const char character : text) {
        if (character == '"' || character == '\\') {
            result += '\\';
            result += character;
        } else if (static_cast<unsigned char>(character) < 0x20) {
            result += fmt::format("\\u{:04x}", static_cast<unsigned>(character));
        } else {
            result += character;
        }
    }
    return result + '"';
}

std::string number(double value) { return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null"; }

std::string joined(const std::vector<std::string>& items, std::string_view indent)
{
    std::string text;
    for (const std::string& item : items) {
        text += fmt::format("{}\n{}{}", text.empty() ? "" : ",", indent, item);
    }
    return text;
}

std::string object_of_facts(const Environment& environment)
{
    std::vector<std::string> items;
    for (const auto& [name, value] : environment) {
        items.push_back(fmt::format("{}: {}", text_value(name), text_value(value)));
    }
    return fmt::format("{{{}\n  }}", joined(items, "    "));
}

}  // namespace tessera::bench
