#include "checks/report_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <set>

namespace tessera::emulator {

namespace {

constexpr std::size_t detail_indent = 2;
constexpr std::size_t continued_indent = 6;
constexpr std::size_t narrowest = 60;    ///< below this width, lines are not wrapped
constexpr std::size_t shown_frames = 4;  ///< of headers below or callers above the leading frame

// SGR parameters of ECMA-48.
constexpr std::string_view bold = "1";
constexpr std::string_view red = "1;31";
constexpr std::string_view yellow = "1;33";
constexpr std::string_view cyan = "36";
constexpr std::string_view faint = "2";

std::string coloured(const TextStyle& style, std::string_view code, std::string_view text)
{
    return style.colour && !text.empty() ? fmt::format("\033[{}m{}\033[0m", code, text) : std::string(text);
}

std::string in_function(std::string_view name)
{
    return name.empty() ? std::string() : fmt::format(" in {}", shown_function(name));
}

class Writer {
public:
    Writer(const TextStyle& style, std::string& text) : style_(style), text_(text) {}

    void line(std::string_view content, std::string_view code = {}, std::size_t indent = detail_indent)
    {
        const std::size_t width = style_.width > indent ? style_.width - indent : 0;
        std::string_view rest = content;
        while (true) {
            const std::string_view one = rest.substr(0, rest.find('\n'));
            text_ += std::string(indent, ' ');
            text_ += coloured(style_, code, wrapped(one, width, continued_indent));
            text_ += '\n';
            if (one.size() == rest.size()) {
                return;
            }
            rest.remove_prefix(one.size() + 1);
        }
    }

    void frame(const SourceFrame& frame, std::string_view how)
    {
        const std::string place = frame.file.empty() ? "an unknown place" : shown_place(frame);
        line(fmt::format("{} {}{}", how, place, in_function(frame.function)), faint, 2 * detail_indent);
    }

private:
    TextStyle style_;
    std::string& text_;
};

void write_source(const Finding& finding, const TextStyle& style, std::string& text)
{
    Writer writer(style, text);
    const std::vector<SourceFrame>& frames = finding.frames;
    const std::string kernel = shown_kernel(finding.kernel);
    if (frames.empty()) {
        writer.line(fmt::format("in kernel {}", kernel), cyan);
        return;
    }
    const std::size_t leading = leading_frame(frames);
    const SourceFrame& first = frames[leading];
    writer.line(first.function.empty()
                    ? fmt::format("at {} in kernel {}", shown_place(first), kernel)
                    : fmt::format("at {}{}, in kernel {}", shown_place(first), in_function(first.function), kernel),
                cyan);
    if (const std::string source = source_line(first); !source.empty()) {
        const std::string excerpt = fmt::format("{:>5} | {}", first.line, source);
        const bool is_too_wide = style.width >= narrowest && excerpt.size() + detail_indent > style.width;
        writer.line(is_too_wide ? excerpt.substr(0, style.width - detail_indent - 3) + "..." : excerpt);
    }
    // First down into the called headers, then up to the kernel.
    for (std::size_t i = leading, shown = 0; i-- > 0; ++shown) {
        if (shown == shown_frames && i > 0) {
            writer.line(fmt::format("... and {} more", i + 1), faint, 2 * detail_indent);
            break;
        }
        writer.frame(frames[i], "which calls");
    }
    for (std::size_t i = leading + 1; i < frames.size(); ++i) {
        if (i - leading > shown_frames && i + 1 < frames.size()) {
            writer.line(fmt::format("... and {} more", frames.size() - i), faint, 2 * detail_indent);
            break;
        }
        writer.frame(frames[i], "called at");
    }
}

void write_host(const Finding& finding, const TextStyle& style, std::string& text)
{
    Writer writer(style, text);
    const std::string_view what = host_verb(finding);
    for (std::size_t i = 0; i < std::min<std::size_t>(finding.host.size(), 2); ++i) {
        const SourceFrame& frame = finding.host[i];
        const std::string_view how = i == 0 ? what : std::string_view("called");
        const std::size_t indent = i == 0 ? detail_indent : 2 * detail_indent;
        const std::string_view code = i == 0 ? cyan : faint;
        if (frame.file.empty()) {
            writer.line(fmt::format("{} in {}", how, frame.function), code, indent);
        } else {
            writer.line(fmt::format("{} at {}{}", how, shown_place(frame), in_function(frame.function)), code, indent);
        }
    }
}

std::string plural(std::uint64_t count, std::string_view one)
{
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

/// The place of a finding in a line of the summary.
std::string short_place(const Finding& finding)
{
    if (finding.frames.empty() && finding.ptx_line != 0) {
        return fmt::format("PTX line {}", finding.ptx_line);
    }
    const SourceFrame* const place = leading_place(finding);
    return place == nullptr ? std::string() : shown_place(*place);
}

}  // namespace

std::string wrapped(std::string_view text, std::size_t width, std::size_t indent)
{
    if (width < narrowest - indent || text.size() <= width) {
        return std::string(text);
    }
    std::string result;
    std::size_t column = 0;
    while (!text.empty()) {
        const std::size_t blank = text.find(' ', text.find_first_not_of(' '));
        const std::string_view word = text.substr(0, blank);
        if (column != 0 && column + word.size() > width) {
            result += '\n' + std::string(indent, ' ');
            column = indent;
            const std::size_t start = word.find_first_not_of(' ');
            result += word.substr(std::min(start, word.size()));
            column += word.size() - std::min(start, word.size());
        } else {
            result += word;
            column += word.size();
        }
        text.remove_prefix(word.size());
    }
    return result;
}

std::string agent_text(const Finding& finding)
{
    std::string text =
        fmt::format("CTA ({}, {}, {}), warp {}", finding.cta.x, finding.cta.y, finding.cta.z, finding.warp);
    if (finding.lanes == all_lanes) {
        text += ", all lanes";
    } else if (std::has_single_bit(finding.lanes)) {
        text += fmt::format(", lane {}", std::countr_zero(finding.lanes));
    } else if (finding.lanes != 0) {
        text += fmt::format(", lanes {:#010x}", finding.lanes);
    }
    return text;
}

const SourceFrame* leading_place(const Finding& finding)
{
    const SourceFrame* const host =
        finding.host.empty() || finding.host.front().file.empty() ? nullptr : &finding.host.front();
    if (finding.frames.empty()) {
        return host;
    }
    const SourceFrame& device = finding.frames[leading_frame(finding.frames)];
    return host != nullptr && owner_of(device.file) != Owner::program ? host : &device;
}

std::string_view host_verb(const Finding& finding)
{
    return finding.kind == FindingKind::resource_leak ? "allocated" : finding.kernel.empty() ? "called" : "launched";
}

std::string count_text(const Finding& finding)
{
    if (finding.count <= 1) {
        return {};
    }
    std::string text = fmt::format("{} times", finding.count);
    if (!finding.kernel.empty() && !finding.not_started) {
        const bool at_least = finding.ctas >= Report::counted_ctas;
        text += fmt::format(": {} in {}{}",
                            finding.accesses == 1 ? "1 access" : fmt::format("{} accesses", finding.accesses),
                            at_least ? "at least " : "", plural(finding.ctas, "CTA"));
        if (finding.instructions > 1) {
            text += fmt::format(", {} instructions", finding.instructions);
        }
    }
    return text;
}

std::string to_text(const Finding& finding, const TextStyle& style, std::string_view heading)
{
    std::string text = coloured(style, faint, heading);
    const std::string name = fmt::format("{}{}", finding.error ? "error: " : "", name_of(finding.kind));
    // Wrapped without colours, which have no width.
    std::string body;
    Writer writer({.colour = false, .width = style.width}, body);
    writer.line(fmt::format("{}{}: {}", heading, name, finding.message), {}, 0);
    body.erase(0, heading.size() + name.size());
    text += coloured(style, finding.error ? red : yellow, name) + body;
    // If the kernel is a library's, the program's own line is that of the launch.
    const bool host_first =
        !finding.frames.empty() && !finding.host.empty() && leading_place(finding) == &finding.host.front();
    if (host_first) {
        write_host(finding, style, text);
    }
    if (!finding.kernel.empty()) {
        write_source(finding, style, text);
    }
    Writer details(style, text);
    if (!finding.kernel.empty() && !finding.not_started) {
        const std::string counted = count_text(finding);
        details.line(counted.empty() ? "by " + agent_text(finding) : counted + "; first by " + agent_text(finding));
    } else if (finding.count > 1) {
        details.line(count_text(finding));
    }
    if (!host_first) {
        write_host(finding, style, text);
    }
    if (finding.ptx_line != 0) {
        details.line(fmt::format("PTX line {}: {}", finding.ptx_line, finding.ptx_text), faint);
    }
    return text;
}

std::string summary_text(std::span<const Finding> findings, bool strict, const TextStyle& style)
{
    if (findings.empty()) {
        return {};
    }
    std::set<FindingKind> kinds;
    std::uint64_t total = 0;
    std::size_t kind_width = 0;
    std::size_t count_width = 0;
    for (const Finding& finding : findings) {
        kinds.insert(finding.kind);
        total += finding.count;
        kind_width = std::max(kind_width, name_of(finding.kind).size());
        count_width = std::max(count_width, std::to_string(finding.count).size());
    }
    std::string text = coloured(style, bold,
                                fmt::format("{} of {}, {}", plural(findings.size(), "finding"),
                                            plural(kinds.size(), "kind"), plural(total, "occurrence"))) +
                       "\n";
    Writer writer(style, text);
    for (const Finding& finding : findings) {
        const std::string place = short_place(finding);
        std::string line = fmt::format("{:>{}} x {}", finding.count, count_width, name_of(finding.kind));
        if (!place.empty()) {
            line += std::string(kind_width + 2 - name_of(finding.kind).size(), ' ') + place;
        }
        if (!finding.kernel.empty()) {
            line += "  in " + shown_kernel(finding.kernel);
        }
        writer.line(line);
    }
    writer.line(strict ? "The exit status is 86, because of --strict."
                       : "The exit status is the program's own; --strict makes it 86.");
    return text;
}

}  // namespace tessera::emulator
