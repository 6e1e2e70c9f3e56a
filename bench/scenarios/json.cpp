#include <fmt/format.h>

#include "report/json_text.hpp"
#include "scenarios/report.hpp"

namespace tessera::scenarios {
namespace {

using bench::joined;
using bench::number;
using bench::text_value;

std::string list_of(const std::vector<std::string>& items)
{
    return fmt::format("[{}\n      ]", joined(items, "        "));
}

std::string object_of(std::string_view what, const EntryTimes& times)
{
    std::string samples;
    for (const double seconds : times.seconds) {
        samples += fmt::format("{}{}", samples.empty() ? "" : ", ", number(seconds));
    }
    std::vector<std::string> phases;
    for (const Phase& phase : times.phases) {
        phases.push_back(fmt::format(R"({{"name": {}, "host_seconds": {}, "device_seconds": {}}})",
                                     text_value(phase.name), number(phase.host_seconds),
                                     phase.on_device ? number(phase.device_seconds) : "null"));
    }
    return fmt::format(R"({{"what": {}, "median_seconds": {}, "samples_seconds": [{}], "phases": {}}})",
                       text_value(what), number(median_of(times)), samples, list_of(phases));
}

std::string object_of(const Report& report)
{
    const Scenario& scenario = *report.scenario;
    const std::string head = fmt::format(R"({{"number": {}, "name": {}, "title": {})", scenario.number,
                                         text_value(scenario.name), text_value(scenario.title));
    if (!report.ran()) {
        const bool skipped = !report.skipped.empty();
        return fmt::format(R"({}, "outcome": "{}", "reason": {}}})", head, skipped ? "skipped" : "failed",
                           text_value(skipped ? report.skipped : report.failure));
    }
    const Outcome& outcome = report.outcome;
    std::vector<std::string> checks, figures, notes;
    for (const Check& check : outcome.checks) {
        checks.push_back(fmt::format(R"({{"what": {}, "bound": {}, "error_over_bound": {}, "passed": {}}})",
                                     text_value(check.what), text_value(check.bound), number(check.error_over_bound),
                                     check.passed()));
    }
    for (const Figure& figure : outcome.figures) {
        figures.push_back(fmt::format(R"({{"name": {}, "value": {}, "unit": {}}})", text_value(figure.name),
                                      number(figure.value), text_value(figure.unit)));
    }
    for (const std::string& note : outcome.notes) {
        notes.push_back(text_value(note));
    }
    return fmt::format(
        "{}, \"outcome\": \"{}\", \"work\": {}, \"speedup\": {},\n      \"baseline\": {},\n      \"optimized\": {},\n"
        "      \"checks\": {},\n      \"figures\": {},\n      \"notes\": {}}}",
        head, report.agrees() ? "agrees" : "wrong", text_value(outcome.work), number(report.speedup()),
        object_of(scenario.baseline, outcome.baseline), object_of(scenario.optimized, outcome.optimized),
        list_of(checks), list_of(figures), list_of(notes));
}

}  // namespace

std::string json_of(const bench::Environment& environment, const std::vector<Report>& reports)
{
    std::vector<std::string> scenarios;
    for (const Report& report : reports) {
        scenarios.push_back(object_of(report));
    }
    return fmt::format(
        "{{\n  \"program\": \"tessera-scenarios\",\n  \"environment\": {},\n  \"scenarios\": [{}\n  ]\n}}\n",
        bench::object_of_facts(environment), joined(scenarios, "    "));
}

}  // namespace tessera::scenarios
