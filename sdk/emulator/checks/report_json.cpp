#include "checks/report_json.hpp"

#include <fmt/format.h>

#include <set>

#include "checks/report_text.hpp"

namespace tessera::emulator {

namespace {

std::string frame_json(const SourceFrame& frame)
{
    return fmt::format(R"({{"file": {}, "line": {}, "function": {}}})", json_string(frame.file), frame.line,
                       json_string(frame.function));
}

std::string frames_json(std::span<const SourceFrame> frames)
{
    std::string text = "[";
    for (const SourceFrame& frame : frames) {
        text += (text.size() == 1 ? "" : ", ") + frame_json(frame);
    }
    return text + "]";
}

std::string finding_json(const Finding& finding)
{
    return fmt::format(
        "{{\"kind\": {}, \"error\": {}, \"count\": {}, \"message\": {}, \"kernel\": {}, \"kernel_name\": {}, "
        "\"cta\": {}, \"warp\": {}, \"lanes\": {}, \"accesses\": {}, \"ctas\": {}, \"instructions\": {}, "
        "\"ptx_line\": {}, \"ptx\": {}, \"source\": {}, \"place\": {}, \"frames\": {}, \"host\": {}}}",
        json_string(name_of(finding.kind)), finding.error, finding.count, json_string(finding.message),
        json_string(finding.kernel), json_string(finding.kernel.empty() ? "" : shown_kernel(finding.kernel)),
        finding.not_started ? "null" : fmt::format("[{}, {}, {}]", finding.cta.x, finding.cta.y, finding.cta.z),
        finding.not_started ? "null" : std::to_string(finding.warp), finding.lanes, finding.accesses, finding.ctas,
        finding.instructions, finding.ptx_line, json_string(finding.ptx_text), json_string(finding.source),
        leading_place(finding) == nullptr ? "null" : frame_json(*leading_place(finding)), frames_json(finding.frames),
        frames_json(finding.host));
}

}  // namespace

std::size_t utf8_length(std::string_view text)
{
    const auto lead = static_cast<unsigned char>(text.front());
    const std::size_t length = lead < 0x80                   ? 1
                               : lead >= 0xC2 && lead < 0xE0 ? 2
                               : lead >= 0xE0 && lead < 0xF0 ? 3
                               : lead >= 0xF0 && lead < 0xF5 ? 4
                                                             : 0;
    if (length == 0 || length > text.size()) {
        return 0;
    }
    for (std::size_t i = 1; i < length; ++i) {
        if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U) {
            return 0;
        }
    }
    return length;
}

std::string json_string(std::string_view text)
{
    std::string result = "\"";
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const char character = text.front();
        const auto byte = static_cast<unsigned char>(character);
        if (length == 0) {
            result += "\\ufffd";
        } else if (character == '"' || character == '\\') {
            result += '\\';
            result += character;
        } else if (byte < 0x20) {
            result += fmt::format("\\u{:04x}", byte);
        } else {
            result += text.substr(0, length);
        }
        text.remove_prefix(length == 0 ? 1 : length);
    }
    return result + "\"";
}

std::string report_json(std::span<const Finding> findings, const RunFacts& run)
{
    std::string text = "{\"findings\": [";
    const char* separator = "\n  ";
    std::uint64_t total = 0;
    std::set<FindingKind> kinds;
    for (const Finding& finding : findings) {
        text += separator + finding_json(finding);
        separator = ",\n  ";
        total += finding.count;
        kinds.insert(finding.kind);
    }
    return text + fmt::format(
                      "\n], \"total\": {}, \"kinds\": {},\n\"run\": {{\"version\": {}, \"devices\": {}, "
                      "\"schedule\": {}, \"numerics\": {}, \"seed\": {}, \"strict\": {}, \"command\": {}, "
                      "\"folder\": {}}}}}\n",
                      total, kinds.size(), json_string(run.version), json_string(run.devices),
                      json_string(run.schedule), json_string(run.numerics), run.seed, run.strict,
                      json_string(run.command), json_string(run.folder));
}

}  // namespace tessera::emulator
