#include "report/html.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/gemm_summary.hpp"
#include "report/html_style.hpp"
#include "report/svg.hpp"

namespace tessera::bench {
namespace {

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
        escaped(title), html_style, body);
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
