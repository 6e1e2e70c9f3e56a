#include <fmt/format.h>

#include <algorithm>

#include "method/statistics.hpp"
#include "report/html_style.hpp"
#include "report/svg.hpp"
#include "scenarios/report.hpp"

namespace tessera::scenarios {
namespace {

using bench::escaped;
using bench::Scale;
using bench::Svg;

struct Bar {
    std::string label;
    double seconds;
    std::string_view style;
    std::string tip;
};

/// A bar for each entry's whole time, and below it one for each of its phases. Phases that overlap add up to more than the whole.
std::string chart_of(const Report& report)
{
    std::vector<Bar> bars;
    const auto add = [&](const char* name, const EntryTimes& times, std::string_view style) {
        const bench::Summary summary = bench::summarize(times.seconds);
        bars.push_back({name, summary.median, style,
                        fmt::format("10th to 90th percentile: {} to {}", time_text(summary.percentile_10),
                                    time_text(summary.percentile_90))});
        for (const Phase& phase : times.phases) {
            bars.push_back({"\u2022 " + phase.name, phase.on_device ? phase.device_seconds : phase.host_seconds,
                            "phase", fmt::format("{} of the host", time_text(phase.host_seconds))});
        }
    };
    add("baseline", report.outcome.baseline, "slower");
    add("optimized", report.outcome.optimized, "faster");

    constexpr double width = 960, label_width = 220, number_width = 110, row = 24;
    double longest = 0;
    for (const Bar& bar : bars) {
        longest = std::max(longest, bar.seconds);
    }
    const Scale scale = Scale::linear(0, longest, label_width, width - number_width);
    Svg svg(width, row * static_cast<double>(bars.size()) + 8, fmt::format("Times of {}", report.scenario->title));
    double top = 4;
    for (const Bar& bar : bars) {
        const bool whole = bar.style != "phase";
        svg.text({label_width - 8, top + 16}, whole ? "end strong" : "end", bar.label);
        svg.rectangle({label_width, top + (whole ? 4 : 8)}, std::max(scale(bar.seconds) - label_width, 1.0),
                      whole ? 16 : 8, bar.style, bar.tip);
        svg.text({scale(bar.seconds) + 6, top + 16}, "start mono", time_text(bar.seconds));
        top += row;
    }
    return svg.finish();
}

std::string phases_of(const char* entry, const EntryTimes& times)
{
    const bench::Summary summary = bench::summarize(times.seconds);
    std::string rows =
        fmt::format("<tr class=\"first\"><td>{}</td><td>{}</td><td></td></tr>\n", entry, time_text(summary.median));
    for (const Phase& phase : times.phases) {
        rows += fmt::format("<tr><td>&bull; {}</td><td>{}</td><td>{}</td></tr>\n", escaped(phase.name),
                            time_text(phase.host_seconds), phase.on_device ? time_text(phase.device_seconds) : "");
    }
    return rows;
}

std::string section_of(const Report& report)
{
    const Scenario& scenario = *report.scenario;
    std::string text =
        fmt::format("<h2 id=\"{}\">{}. {}</h2>\n", scenario.name, scenario.number, escaped(scenario.title));
    if (!report.ran()) {
        return text + fmt::format("<p class=\"{}\">{}: {}</p>\n", report.failure.empty() ? "soft" : "bad",
                                  report.failure.empty() ? "Skipped" : "Failed",
                                  escaped(report.failure.empty() ? report.skipped : report.failure));
    }
    const Outcome& outcome = report.outcome;
    text += fmt::format("<p>Baseline: {}. Optimized: {}. <span class=\"soft\">{}.</span></p>\n",
                        escaped(scenario.baseline), escaped(scenario.optimized), escaped(outcome.work));
    text += fmt::format(
        "<figure>\n{}<figcaption>Phases are the device's time where they have any; those that overlap add up to more "
        "than "
        "the whole.</figcaption>\n</figure>\n",
        chart_of(report));
    text += fmt::format(
        "<div "
        "class=\"scroll\"><table>\n<thead><tr><th>phase</th><th>host</th><th>device</th></tr></thead>\n<tbody>\n{}{}"
        "</tbody></table></div>\n",
        phases_of("baseline", outcome.baseline), phases_of("optimized", outcome.optimized));
    if (!outcome.figures.empty()) {
        text += "<div class=\"scroll\"><table>\n<tbody>\n";
        for (const Figure& figure : outcome.figures) {
            text += fmt::format("<tr><td>{}</td><td>{:.4g} {}</td></tr>\n", escaped(figure.name), figure.value,
                                escaped(figure.unit));
        }
        text += "</tbody></table></div>\n";
    }
    text += "<p class=\"soft\">";
    for (const Check& check : outcome.checks) {
        text += fmt::format("<span class=\"{}\">{}</span> {}: {:.3g} of the bound ({}).<br/>\n",
                            check.passed() ? "good" : "bad", check.passed() ? "Agrees" : "WRONG", escaped(check.what),
                            check.error_over_bound, escaped(check.bound));
    }
    for (const std::string& note : outcome.notes) {
        text += fmt::format("Note: {}.<br/>\n", escaped(note));
    }
    return text + "</p>\n";
}

std::string overview_of(const std::vector<Report>& reports)
{
    std::string rows;
    for (const Report& report : reports) {
        const Scenario& scenario = *report.scenario;
        rows += fmt::format("<tr><td><a href=\"#{}\">{}. {}</a></td>", scenario.name, scenario.number,
                            escaped(scenario.title));
        if (report.ran()) {
            rows +=
                fmt::format("<td>{}</td><td>{}</td><td class=\"{}\">{:.2f}</td><td class=\"left {}\">{}</td></tr>\n",
                            time_text(median_of(report.outcome.baseline)),
                            time_text(median_of(report.outcome.optimized)), report.speedup() >= 1 ? "good" : "bad",
                            report.speedup(), report.agrees() ? "good" : "bad", report.agrees() ? "agree" : "WRONG");
        } else {
            rows += fmt::format("<td></td><td></td><td></td><td class=\"left soft\">{}</td></tr>\n",
                                report.failure.empty() ? "skipped" : "failed");
        }
    }
    return fmt::format(
        "<div class=\"scroll\"><table>\n<thead><tr><th>scenario</th><th>baseline</th><th>optimized</th><th>times as "
        "fast"
        "</th><th class=\"left\">results</th></tr></thead>\n<tbody>\n{}</tbody></table></div>\n",
        rows);
}

}  // namespace

std::string html_of(const bench::Environment& environment, const std::vector<Report>& reports, bool emulated)
{
    std::string page = fmt::format(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
        "content=\"width=device-width\"/>\n"
        "<title>Tessera: scenarios</title>\n<style>{}.phase {{ fill: var(--peer0); "
        "}}\n</style>\n</head>\n<body>\n<main>\n"
        "<h1>Scenarios</h1>\n<p class=\"soft\">Each is one job done in two ways, with one result.</p>\n",
        bench::html_style);
    if (emulated) {
        page += "<p class=\"bad\">An emulated device: the results are real, the times say nothing about a GPU.</p>\n";
    }
    page += overview_of(reports);
    for (const Report& report : reports) {
        page += section_of(report);
    }
    page += "<h2>Environment</h2>\n<pre>\n";
    for (const auto& [name, value] : environment) {
        page += fmt::format("{}: {}\n", escaped(name), escaped(value));
    }
    return page + "</pre>\n</main>\n</body>\n</html>\n";
}

}  // namespace tessera::scenarios
