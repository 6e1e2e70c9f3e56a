#include "program/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

namespace tessera::emulator {

namespace {

constexpr std::string_view marker = "PTX line ";

}  // namespace

std::optional<std::uint32_t> take_line(std::string_view& text, std::string& taken)
{
    const std::size_t at = text.find(marker);
    if (at == std::string_view::npos) {
        return std::nullopt;
    }
    std::uint32_t line = 0;
    const char* const stop = std::from_chars(text.data() + at + marker.size(), text.data() + text.size(), line).ptr;
    const auto size = static_cast<std::size_t>(stop - text.data());
    taken += text.substr(0, size);
    text.remove_prefix(size);
    return line;
}

const Operation* operation_of_line(const Program& program, std::uint32_t line)
{
    // Many findings name the same few lines. A different program may be at the same address.
    thread_local const Program* last = nullptr;
    thread_local std::unordered_map<std::uint32_t, std::size_t> known;
    if (last != &program) {
        known.clear();
        last = &program;
    }
    const auto is_it = [&](const Operation& operation) {
        return operation.source != nullptr && operation.source->location.line == line;
    };
    const auto found = known.find(line);
    if (found != known.end() && found->second < program.operations.size() && is_it(program.operations[found->second])) {
        return &program.operations[found->second];
    }
    const auto operation = std::ranges::find_if(program.operations, is_it);
    if (operation == program.operations.end()) {
        return nullptr;
    }
    known[line] = static_cast<std::size_t>(operation - program.operations.begin());
    return &*operation;
}

std::string Program::with_places(std::string_view text) const
{
    std::string result;
    while (const std::optional<std::uint32_t> line = take_line(text, result)) {
        if (const Operation* const operation = operation_of_line(*this, *line)) {
            const std::vector<SourceFrame> frames = frames_of(operation->source->location);
            result += frames.empty() ? "" : ", " + shown_place(frames[leading_frame(frames)]);
        }
    }
    return result + std::string(text);
}

}  // namespace tessera::emulator
