#include "report/html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/gemm_summary.hpp"
#include "report/svg.hpp"

namespace tessera::bench {
namespace {

constexpr std::string_view style = R"(
:root { color-scheme: light dark; --paper: #fbfbf9; --card: #ffffff; --ink: #1c2126; --soft: #66707a; --rule: #dfe2e4;
  --good: #16855b; --bad: #c2571a; --ours0: #0a6cf0; --ours1: #8a35d6; --ours2: #0d9488; --ours3: #d0307f;
  --peer0: #9aa3ab; --peer1: #c08a1e; --peer2: #7c8a5a; --peer3: #a6705d; }
@media (prefers-color-scheme: dark) { :root { --paper: #14171a; --card: #1c2024; --ink: #e7eaec; --soft: #98a2ab;
  --rule: #32383d; --good: #4cc38a; --bad: #ef8a4b; --ours0: #5aa5ff; --ours1: #bd83f7; --ours2: #3fc8b8;
  --ours3: #f06bac; --peer0: #7c868f; --peer1: #d9a63c; --peer2: #9aaa72; --peer3: #c48c78; } }
body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 28px; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 19px; margin: 44px 0 10px; }
p { margin: 0 0 12px; max-width: 75ch; }
.soft, figcaption { color: var(--soft); }
.cards { display: flex; flex-wrap: wrap; gap: 14px; margin: 24px 0 0; }
.card { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; padding: 14px 18px; flex: 1 1 200px; }
.card b { display: block; font-size: 32px; font-variant-numeric: tabular-nums; line-height: 1.2; }
figure { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; margin: 0; padding: 16px;
  overflow-x: auto; }
figcaption { margin-top: 8px; font-size: 13px; }
svg { display: block; width: 100%; min-width: 680px; height: auto; font: 12px system-ui, sans-serif; }
svg text { fill: var(--ink); } .start { text-anchor: start; } .middle { text-anchor: middle; } .end { text-anchor: end; }
.mono { font-family: ui-monospace, monospace; font-size: 11px; } .strong { font-weight: 600; }
svg .good { fill: var(--good); } svg .bad { fill: var(--bad); } .good { color: var(--good); } .bad { color: var(--bad); }
.grid { stroke: var(--rule); stroke-width: 1; } .axis { stroke: var(--soft); stroke-width: 1.2; }
.whisker { stroke: var(--ink); stroke-width: 1.6; } .faster { fill: var(--good); } .slower { fill: var(--bad); }
.roof { fill: none; stroke: var(--soft); stroke-width: 2; stroke-dasharray: 6 4; } .curve { fill: none; stroke-width: 2; }
.dot { stroke: var(--card); stroke-width: 1.2; }
.dot.ours0 { fill: var(--ours0); } .dot.ours1 { fill: var(--ours1); } .dot.ours2 { fill: var(--ours2); }
.dot.ours3 { fill: var(--ours3); } .dot.peer0 { fill: var(--peer0); } .dot.peer1 { fill: var(--peer1); }
.dot.peer2 { fill: var(--peer2); } .dot.peer3 { fill: var(--peer3); }
.curve.ours0 { stroke: var(--ours0); } .curve.ours1 { stroke: var(--ours1); } .curve.ours2 { stroke: var(--ours2); }
.curve.ours3 { stroke: var(--ours3); } .curve.peer0 { stroke: var(--peer0); } .curve.peer1 { stroke: var(--peer1); }
.curve.peer2 { stroke: var(--peer2); } .curve.peer3 { stroke: var(--peer3); }
.heat0, .heat1, .heat2, .heat3, .heat4, .heat5, .heat6, .heat7, .heat8, .heat9 { fill: var(--ours0); stroke: var(--card); }
.heat0 { fill-opacity: 0.04; } .heat1 { fill-opacity: 0.1; } .heat2 { fill-opacity: 0.17; } .heat3 { fill-opacity: 0.24; }
.heat4 { fill-opacity: 0.31; } .heat5 { fill-opacity: 0.38; } .heat6 { fill-opacity: 0.46; } .heat7 { fill-opacity: 0.54; }
.heat8 { fill-opacity: 0.63; } .heat9 { fill-opacity: 0.73; } .none { fill: none; stroke: var(--rule); }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: 4px 10px; border-bottom: 1px solid var(--rule); text-align: right; white-space: nowrap; }
th:first-child, td:first-child, td.left, th.left { text-align: left; }
tr.first td { border-top: 2px solid var(--rule); } pre { white-space: pre-wrap; font-size: 12px; color: var(--soft); }
)";

std::string value_of(const Environment& environment, std::string_view name)
{
    const auto found =
        std::find_if(environment.begin(), environment.end(), [&](const auto& fact) { return fact.first == name; });
    return found == environment.end() ? std::string() : found->second;
}

std::string cards_of(const std::vector<ProblemReport>& reports)
{
    std::string cards;
    for (const RatioSummary& summary : summarize_ratios(reports)) {
        cards += fmt::format(
            "<div class=\"card\">{} vs. {}<b class=\"{}\">{:.3f}</b><span class=\"soft\">geometric mean of {} "
            "problem{}<br/>median {:.3f}, p10 {:.3f}<br/>lowest {:.3f} at {}</span></div>\n",
            escaped(readable(summary.contender)), escaped(readable(summary.peer)),
            summary.geometric_mean >= 1 ? "good" : "bad", summary.geometric_mean, summary.problems,
            summary.problems == 1 ? "" : "s", summary.median, summary.percentile_10, summary.lowest,
            escaped(summary.lowest_problem));
    }
    return cards.empty() ? cards : fmt::format("<div class=\"cards\">\n{}</div>\n", cards);
}

/// The summaries by type and by epilogue, or nothing if there is one of each.
std::string groups_of(const std::vector<ProblemReport>& reports)
{
    std::string rows;
    for (const RatioSummary& group : summarize_groups(reports)) {
        rows += fmt::format(
            "<tr><td>{}</td><td class=\"left\">{}</td><td class=\"left\">{}</td><td>{}</td><td "
            "class=\"{}\">{:.3f}</td><td>{:.3f}</td><td>{:.3f}</td><td>{:.3f}</td><td "
            "class=\"left\">{}</td></tr>\n",
            escaped(group.group), escaped(readable(group.contender)), escaped(readable(group.peer)), group.problems,
            group.geometric_mean >= 1 ? "good" : "bad", group.geometric_mean, group.median, group.percentile_10,
            group.lowest, escaped(group.lowest_problem));
    }
    return rows.empty() ? rows
                        : fmt::format(
                              "<h2>Ratios by type and by epilogue</h2>\n<div class=\"scroll\"><table>\n<thead>"
                              "<tr><th>group</th><th class=\"left\">contender</th><th class=\"left\">peer"
                              "</th><th>problems</th><th>geometric mean</th><th>median</th><th>p10</th><th>"
                              "lowest</th><th class=\"left\">at</th></tr></thead>\n<tbody>\n{}</tbody></table>"
                              "</div>\n",
                              rows);
}

std::vector<ElementType> inputs_of(const std::vector<ProblemReport>& reports)
{
    std::vector<ElementType> inputs;
    for (const ProblemReport& report : reports) {
        if (std::find(inputs.begin(), inputs.end(), report.problem.input) == inputs.end()) {
            inputs.push_back(report.problem.input);
        }
    }
    return inputs;
}

std::string row_of(const ProblemReport& report, const Measurement& measurement, bool first, const Ceilings& ceilings)
{
    std::string row =
        fmt::format("<tr{}><td>{}</td><td class=\"left\">{}</td>", first ? " class=\"first\"" : "",
                    first ? escaped(full_name_of(report.problem)) : "", escaped(readable(measurement.contender)));
    if (measurement.seconds.empty()) {
        return row + fmt::format("<td colspan=\"9\" class=\"left soft\">{}</td></tr>\n", escaped(measurement.note));
    }
    const Summary seconds = summarize(measurement.seconds);
    const double rate = report.problem.flops() / seconds.median;
    const Ceilings::Compute* compute = ceilings.find(report.problem.input);
    row += fmt::format("<td>{:.2f}</td><td>{:.2f}</td><td>{:.2f}</td><td>{:.1f}</td><td>{}</td>", 1e6 * seconds.median,
                       1e6 * seconds.percentile_10, 1e6 * seconds.percentile_90, rate / 1e12,
                       compute == nullptr ? "" : fmt::format("{:.0f} %", 100 * rate / compute->flops_per_second));
    const ClockSummary& clocks = measurement.clocks;
    row += clocks.readings == 0 ? "<td></td><td></td><td class=\"left\"></td>"
                                : fmt::format("<td>{:.0f}</td><td>{}</td><td class=\"left\">{}</td>", clocks.sm_mhz,
                                              clocks.watts == 0 ? "" : fmt::format("{:.0f}", clocks.watts),
                                              describe_throttle(clocks.throttle));
    const bool wrong = measurement.outcome == Outcome::wrong;
    return row + fmt::format("<td class=\"left {}\">{}{}</td></tr>\n", wrong ? "bad" : "soft", wrong ? "WRONG: " : "",
                             escaped(measurement.note));
}

std::string table_of(const std::vector<ProblemReport>& reports, const Ceilings& ceilings)
{
    std::string text =
        "<h2>All measurements</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th>problem</th><th "
        "class=\"left\">contender"
        "</th><th>median us</th><th>p10 us</th><th>p90 us</th><th>TFLOP/s</th><th>of ceiling</th><th>SM "
        "MHz</th><th>max W</th><th "
        "class=\"left\">limited by</th><th class=\"left\">"
        "remark</th></tr></thead>\n<tbody>\n";
    for (const ProblemReport& report : reports) {
        for (const Measurement& measurement : report.measurements) {
            text += row_of(report, measurement, &measurement == &report.measurements.front(), ceilings);
        }
    }
    return text + "</tbody></table></div>\n";
}

std::string facts_of(const Environment& environment, const Ceilings& ceilings)
{
    std::string text = "<h2>Environment</h2>\n<div class=\"scroll\"><table>\n<tbody>\n";
    const auto add = [&](std::string_view name, std::string_view value) {
        text += fmt::format("<tr><td>{}</td><td class=\"left\">{}</td></tr>\n", escaped(name), escaped(value));
    };
    for (const auto& [name, value] : environment) {
        add(name, value);
    }
    for (const Ceilings::Compute& compute : ceilings.compute) {
        add(fmt::format("peak for {}", to_string(compute.input)),
            fmt::format("{:.0f} TFLOP/s: {}", compute.flops_per_second / 1e12, compute.source));
    }
    if (ceilings.bytes_per_second > 0) {
        add("memory bandwidth",
            fmt::format("{:.2f} TB/s: {}", ceilings.bytes_per_second / 1e12, ceilings.bytes_source));
    }
    return text + "</tbody></table></div>\n";
}

}  // namespace

const Ceilings::Compute* Ceilings::find(ElementType input) const
{
    const auto found =
        std::find_if(compute.begin(), compute.end(), [&](const Compute& ceiling) { return ceiling.input == input; });
    return found == compute.end() ? nullptr : &*found;
}

Ceilings completed(Ceilings given, const std::vector<ProblemReport>& reports)
{
    for (const ElementType input : inputs_of(reports)) {
        if (given.find(input) != nullptr) {
            continue;
        }
        Ceilings::Compute fastest{input, 0, {}};
        for (const ProblemReport& report : reports) {
            for (const Measurement& measurement : report.measurements) {
                const double rate = flops_per_second(report, measurement.contender);
                if (report.problem.input == input && rate > fastest.flops_per_second) {
                    fastest.flops_per_second = rate;
                    fastest.source = fmt::format("the fastest product of this run, {} by {}", name_of(report.problem),
                                                 readable(measurement.contender));
                }
            }
        }
        if (fastest.flops_per_second > 0) {
            given.compute.push_back(fastest);
        }
    }
    return given;
}

std::string html_page(std::string_view title, std::string_view body)
{
    return fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
        "<title>{}</title>\n<style>{}</style>\n</head>\n<body>\n<main>\n{}</main>\n</body>\n</html>\n",
        escaped(title), style, body);
}

std::string html_section(std::string_view title, std::string_view chart, std::string_view caption)
{
    return chart.empty() ? std::string()
                         : fmt::format("<h2>{}</h2>\n<figure>\n{}<figcaption>{}</figcaption>\n</figure>\n",
                                       escaped(title), chart, escaped(caption));
}

std::string html_of(const GemmDocument& document)
{
    const auto& [environment, method, reports, ceilings] = document;
    std::string text = fmt::format("<h1>Matrix products: Tessera and cuBLASLt</h1>\n<p class=\"soft\">{}<br/>{}</p>\n",
                                   escaped(value_of(environment, "device")), escaped(value_of(environment, "date")));
    text += cards_of(reports);
    text += groups_of(reports);
    text +=
        html_section("Speed relative to cuBLASLt", ratio_chart(reports),
                     "Above 1 is faster. The line on a bar spans the 10th to the 90th percentile of the ratios within "
                     "rounds.");
    for (const ElementType input : inputs_of(reports)) {
        text += html_section(fmt::format("Roofline, {}", to_string(input)), roofline_chart(reports, ceilings, input),
                             "Each point is a problem. The dashed line is the limit set by memory and arithmetic; its "
                             "sources are at the end of the page.");
        text += html_section(fmt::format("Size sweep, {}", to_string(input)), sweep_chart(reports, input),
                             "Cubes: M = N = K.");
    }
    text += table_of(reports, ceilings);
    text += fmt::format("<h2>Method</h2>\n<pre>{}</pre>\n", escaped(method));
    text += facts_of(environment, ceilings);
    return html_page("Tessera: matrix products", text);
}

}  // namespace tessera::bench
