#include "machine/finding_causes.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "program/places.hpp"

namespace tessera::emulator {

namespace {

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

}  // namespace tessera::emulator
