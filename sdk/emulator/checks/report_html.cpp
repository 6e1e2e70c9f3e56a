#include "checks/report_html.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "checks/report_text.hpp"

namespace tessera::emulator {

namespace {

constexpr std::uint32_t context_lines = 2;  ///< before and after the line of a finding
constexpr std::size_t longest_source_line = 200;

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --text: #1b1f24; --faint: #5b6570; --line: #d5dae0;
  --code: #f0f2f5; --mark: #fff3c4; --error: #b3261e; --warning: #8a5a00; --good: #1a6b3c; --accent: #0b57a4; }
@media (prefers-color-scheme: dark) { :root { --page: #14171a; --card: #1d2125; --text: #e4e7eb; --faint: #9aa5b1;
  --line: #353c43; --code: #262b30; --mark: #4a3f14; --error: #ff8a80; --warning: #f2c14e; --good: #6fd39a;
  --accent: #8ab8f5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; }
h1 { font-size: 1.5rem; margin: 0 0 .25rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .75rem; overflow-wrap: anywhere; }
h3 { font-size: 1rem; margin: 0; overflow-wrap: anywhere; }
p { margin: .5rem 0; overflow-wrap: anywhere; }
code, pre, .message { font-family: ui-monospace, monospace; font-size: .875rem; }
pre { background: var(--code); border-radius: 6px; padding: .6rem .75rem; margin: .6rem 0; overflow-x: auto; }
.faint { color: var(--faint); } .verdict { font-size: 1.1rem; font-weight: 600; }
.clean { color: var(--good); } .error { color: var(--error); } .warning { color: var(--warning); }
.card { background: var(--card); border: 1px solid var(--line); border-left: 4px solid var(--warning);
  border-radius: 8px; padding: .9rem 1rem; margin: .75rem 0; }
.card.stops { border-left-color: var(--error); }
.message { white-space: pre-wrap; overflow-wrap: anywhere; margin: .5rem 0; }
.place { color: var(--accent); }
.source span { display: block; white-space: pre; width: max-content; min-width: 100%; } .source .here { background: var(--mark); }
.source i { display: inline-block; width: 4rem; padding-right: 1rem; text-align: right; color: var(--faint);
  font-style: normal; user-select: none; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .15rem 1rem; margin: .6rem 0 0; font-size: .9375rem; }
dt { color: var(--faint); } dd { margin: 0; overflow-wrap: anywhere; }
details { margin-top: .5rem; font-size: .9375rem; } summary { cursor: pointer; color: var(--faint); }
.scroll { overflow-x: auto; } table { border-collapse: collapse; font-size: .9375rem; width: 100%; }
th, td { text-align: right; padding: .3rem .6rem; border-bottom: 1px solid var(--line); white-space: nowrap; }
th:first-child, td:first-child { text-align: left; white-space: normal; min-width: 12rem; overflow-wrap: anywhere; }
th { font-weight: 600; color: var(--faint); }
@media (max-width: 36rem) { dl { grid-template-columns: 1fr; gap: 0; } dd { margin-bottom: .35rem; }
  main { padding: 1rem .6rem 2rem; } .source i { width: 2.5rem; padding-right: .5rem; } }
)";

std::string plural(std::uint64_t count, std::string_view one)
{
    return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

/// "1,234,567": readers compare long numbers by eye here.
std::string grouped(std::uint64_t number)
{
    std::string text = std::to_string(number);
    for (std::size_t at = text.size(); at > 3;) {
        at -= 3;
        text.insert(at, ",");
    }
    return text;
}

std::string place_html(const SourceFrame& frame)
{
    if (frame.file.empty()) {
        return fmt::format("<code>{}</code>", html_text(frame.function));
    }
    const std::string function = frame.function.empty() ? "" : shown_function(frame.function);
    return fmt::format("<code class=\"place\" title=\"{}\">{}</code>{}", html_text(frame.file),
                       html_text(shown_place(frame)),
                       function.empty() ? "" : fmt::format(" in <code>{}</code>", html_text(function)));
}

/// The line, with `context` lines before and after; empty if the file cannot be read.
std::string source_html(const SourceFrame& frame, std::uint32_t context)
{
    std::error_code error;
    if (frame.file.empty() || frame.line == 0 || !std::filesystem::is_regular_file(frame.file, error)) {
        return {};
    }
    std::ifstream file(frame.file);
    std::string text;
    std::string line;
    bool has_line = false;
    for (std::uint32_t number = 1; number <= frame.line + context && std::getline(file, line); ++number) {
        if (number + context < frame.line) {
            continue;
        }
        has_line = has_line || number == frame.line;
        std::ranges::replace(line, '\t', ' ');
        const std::string cut = line.size() > longest_source_line ? line.substr(0, longest_source_line) + "..." : line;
        text += fmt::format("<span{}><i>{}</i>{}</span>", number == frame.line ? " class=\"here\"" : "", number,
                            html_text(cut));
    }
    return has_line ? fmt::format("<pre class=\"source\">{}</pre>\n", text) : std::string();
}

void add_row(std::string& rows, std::string_view name, const std::string& value)
{
    if (!value.empty()) {
        rows += fmt::format("<dt>{}</dt><dd>{}</dd>\n", name, value);
    }
}

std::string chain_html(const Finding& finding, std::size_t leading)
{
    if (finding.frames.size() < 2) {
        return {};
    }
    std::string items;
    for (std::size_t i = 0; i < finding.frames.size(); ++i) {
        items += fmt::format("<li>{}{}</li>\n", place_html(finding.frames[i]), i == leading ? " (shown above)" : "");
    }
    return fmt::format(
        "<details><summary>All {} source lines, from the instruction outwards</summary>\n<ol>{}</ol></details>\n",
        finding.frames.size(), items);
}

std::string finding_html(const Finding& finding)
{
    std::string text =
        fmt::format("<article class=\"card{}\">\n<h3><span class=\"{}\">{}{}</span>", finding.error ? " stops" : "",
                    finding.error ? "error" : "warning", finding.error ? "error: " : "", name_of(finding.kind));
    const std::size_t leading = finding.frames.empty() ? 0 : leading_frame(finding.frames);
    if (!finding.frames.empty()) {
        text += " at " + place_html(finding.frames[leading]);
    }
    text += fmt::format("</h3>\n<p class=\"message\">{}</p>\n", html_text(finding.message));
    if (!finding.frames.empty()) {
        text += source_html(finding.frames[leading], context_lines);
    }
    std::string rows;
    add_row(rows, "Seen", finding.count > 1 ? count_text(finding) : "once");
    if (!finding.kernel.empty() && !finding.not_started) {
        add_row(rows, finding.count > 1 ? "First occurrence" : "By", agent_text(finding));
    }
    if (!finding.host.empty()) {
        std::string verb(host_verb(finding));
        verb.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(verb.front())));
        add_row(rows, verb + " at", place_html(finding.host.front()));
    }
    if (finding.ptx_line != 0) {
        add_row(rows, "PTX", fmt::format("line {}: <code>{}</code>", finding.ptx_line, html_text(finding.ptx_text)));
    }
    text += fmt::format("<dl>\n{}</dl>\n", rows);
    if (!finding.host.empty()) {
        text += source_html(finding.host.front(), 0);
    }
    return text + chain_html(finding, leading) + "</article>\n";
}

std::string run_html(const RunFacts& run)
{
    std::string rows;
    add_row(rows, "Device", html_text(run.devices));
    add_row(rows, "Schedule", html_text(fmt::format("{}, seed {}", run.schedule, run.seed)));
    add_row(rows, "Tensor cores", html_text(run.numerics + (run.numerics == "fast" ? " sums" : " sums, bit by bit")));
    add_row(rows, "Folder", fmt::format("<code>{}</code>", html_text(run.folder)));
    add_row(rows, "tessera-emu", html_text(run.version));
    return fmt::format("<h2>How to reproduce this</h2>\n<pre>{}</pre>\n<dl>\n{}</dl>\n", html_text(run.command), rows);
}

std::string totals_html(std::span<const KernelTotals> totals)
{
    if (totals.empty()) {
        return {};
    }
    constexpr std::array headings{"Kernel",      "Launches",       "CTAs",          "Warp instructions",
                                  "Global read", "Global written", "TMA read",      "TMA written",
                                  "MMAs",        "MMA flops",      "Barrier waits", "Stalled waits"};
    std::string text =
        "<h2>What the kernels did</h2>\n<p class=\"faint\">Counts of the requested work; columns named read or written "
        "are in bytes. Nothing here predicts a time.</p>\n<div class=\"scroll\"><table>\n<tr>";
    for (const char* heading : headings) {
        text += fmt::format("<th>{}</th>", heading);
    }
    text += "</tr>\n";
    for (const KernelTotals& kernel : totals) {
        const Statistics& s = kernel.statistics;
        const std::uint64_t instructions =
            std::accumulate(s.warp_instructions.begin(), s.warp_instructions.end(), std::uint64_t{0});
        text += fmt::format("<tr><td><code>{}</code></td>", html_text(shown_kernel(kernel.kernel)));
        for (const std::uint64_t number :
             {kernel.launches, s.ctas, instructions, s.global_read_bytes, s.global_write_bytes, s.tma_load_bytes,
              s.tma_store_bytes, s.mma_issued, s.mma_flops, s.barrier_waits, s.barrier_stalls}) {
            text += fmt::format("<td>{}</td>", grouped(number));
        }
        text += "</tr>\n";
    }
    return text + "</table></div>\n";
}

std::string verdict_html(std::span<const Finding> findings, bool strict)
{
    if (findings.empty()) {
        return "<p class=\"verdict clean\">No findings.</p>\n<p class=\"faint\">With these inputs and this schedule, "
               "no check found a fault.</p>\n";
    }
    std::set<FindingKind> kinds;
    std::uint64_t total = 0;
    bool stops = false;
    for (const Finding& finding : findings) {
        kinds.insert(finding.kind);
        total += finding.count;
        stops = stops || finding.error;
    }
    return fmt::format("<p class=\"verdict {}\">{} of {}, {}.</p>\n<p class=\"faint\">{}</p>\n",
                       stops ? "error" : "warning", plural(findings.size(), "finding"), plural(kinds.size(), "kind"),
                       plural(total, "occurrence"),
                       strict ? "The exit status is 86, because of <code>--strict</code>."
                              : "The exit status is the program's own; <code>--strict</code> makes it 86.");
}

}  // namespace

std::string html_text(std::string_view text)
{
    std::string result;
    while (!text.empty()) {
        const std::size_t length = utf8_length(text);
        const char c = text.front();
        const auto byte = static_cast<unsigned char>(c);
        switch (c) {
            case '&': result += "&amp;"; break;
            case '<': result += "&lt;"; break;
            case '>': result += "&gt;"; break;
            case '"': result += "&quot;"; break;
            case '\'': result += "&#39;"; break;
            default:
                if (length == 0 || (byte < 0x20 && c != '\n' && c != '\t') || byte == 0x7F) {
                    result += "\xEF\xBF\xBD";
                } else {
                    result += text.substr(0, length);
                }
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
    return result;
}

std::string report_html(std::span<const Finding> findings, const RunFacts& run, std::span<const KernelTotals> totals)
{
    std::string body = fmt::format("<h1>Emulated device: findings</h1>\n{}", verdict_html(findings, run.strict));
    std::vector<std::string> kernels;  // in the order of their first findings
    for (const Finding& finding : findings) {
        if (std::ranges::find(kernels, finding.kernel) == kernels.end()) {
            kernels.push_back(finding.kernel);
        }
    }
    for (const std::string& kernel : kernels) {
        body += kernel.empty() ? "<h2>In the host program</h2>\n"
                               : fmt::format("<h2>In kernel <code>{}</code></h2>\n", html_text(shown_kernel(kernel)));
        for (const Finding& finding : findings) {
            body += finding.kernel == kernel ? finding_html(finding) : std::string();
        }
    }
    body += run_html(run) + totals_html(totals);
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
        "<title>{} - tessera-emu</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n"
        "</html>\n",
        findings.empty() ? "No findings" : plural(findings.size(), "finding"), style, body);
}

}  // namespace tessera::emulator
