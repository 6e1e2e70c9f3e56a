#include "program/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_map>

namespace tessera::emulator {

namespace {

constexpr std::string_view marker = "PTX line ";

/// Removes the next "PTX line 12", and the text before it, from the beginning of `text`; returns the line, if any.
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

/// A place in the source that is the same for all copies of an unrolled loop; the PTX line if there is none.
std::string place_of(const Program& program, std::uint32_t line)
{
    const Operation* const operation = operation_of_line(program, line);
    std::string place;
    if (operation != nullptr) {
        for (const SourceFrame& frame : program.frames_of(operation->source->location)) {
            place += fmt::format("{}:{}|", frame.file, frame.line);
        }
        if (!place.empty()) {
            const std::string& text = operation->source->text;
            place += text.substr(0, text.find(' '));
        }
    }
    return place.empty() ? std::to_string(line) : place;
}

}  // namespace

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

std::string race_cause(const Program& program, const Finding& finding)
{
    std::string_view rest = finding.message;
    std::string before;
    const std::optional<std::uint32_t> other = take_line(rest, before);
    if (!other) {
        return {};
    }
    std::string first = place_of(program, finding.ptx_line);
    std::string second = place_of(program, *other);
    if (second < first) {
        std::swap(first, second);
    }
    return fmt::format("race {} {}", first, second);
}

std::string trap_reason(const Finding& finding)
{
    std::string dropped;  // the outermost class: the name of a base class says less
    for (const SourceFrame& frame : finding.frames) {
        const std::string function = shown_kernel(frame.function);
        const std::size_t at = function.rfind("::~");
        if (at != std::string::npos) {
            dropped = function.substr(0, at);
        } else if (!dropped.empty()) {
            break;
        }
    }
    if (!dropped.empty()) {
        return fmt::format(
            ": the destructor of {} stops the kernel, because the object was dropped before it was "
            "handed on or released",
            dropped);
    }
    return ": the kernel stopped itself (__trap)";
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
