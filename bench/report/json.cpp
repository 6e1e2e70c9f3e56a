#include <fmt/format.h>

#include "report/gemm_summary.hpp"
#include "report/json_text.hpp"
#include "report/report.hpp"

namespace tessera::bench {
namespace {

std::string list_of(const std::vector<double>& values, double scale)
{
    std::string text;
    for (const double value : values) {
        text += fmt::format("{}{}", text.empty() ? "" : ", ", number(scale * value));
    }
    return fmt::format("[{}]", text);
}

/// @param summaries  a member of its own, if not empty
std::string document(const Environment& environment, std::string_view benchmark,
                     const std::vector<std::string>& results, const std::vector<std::string>& summaries = {})
{
    return fmt::format("{{\n  \"benchmark\": {},\n  \"environment\": {},\n{}  \"results\": [{}\n  ]\n}}\n",
                       text_value(benchmark), object_of_facts(environment),
                       summaries.empty() ? "" : fmt::format("  \"ratios\": [{}\n  ],\n", joined(summaries, "    ")),
                       joined(results, "    "));
}

std::string object_of(const RatioSummary& summary)
{
    return fmt::format(R"({{"contender": {}, "peer": {}, "group": {}, "problems": {}, "geometric_mean": {}, )"
                       R"("median": {}, "p10": {}, "lowest": {}, "lowest_problem": {}}})",
                       text_value(summary.contender), text_value(summary.peer),
                       summary.group.empty() ? "null" : text_value(summary.group), summary.problems,
                       number(summary.geometric_mean), number(summary.median), number(summary.percentile_10),
                       number(summary.lowest), text_value(summary.lowest_problem));
}

/// The members common to every set of samples; `unit` is "us" or "ns".
std::string members_of(const std::vector<double>& samples, std::string_view unit, double scale)
{
    const Summary summary = summarize(samples);
    return fmt::format(R"("median_{0}": {1}, "p10_{0}": {2}, "p90_{0}": {3}, "min_{0}": {4}, "max_{0}": {5}, )"
                       R"("samples_{0}": {6})",
                       unit, number(scale * summary.median), number(scale * summary.percentile_10),
                       number(scale * summary.percentile_90), number(scale * summary.minimum),
                       number(scale * summary.maximum), list_of(samples, scale));
}

std::string members_of(const ClockSummary& clocks)
{
    const bool known = clocks.readings > 0;
    return fmt::format(R"("sm_mhz": {}, "max_watts": {}, "throttle": {})", known ? number(clocks.sm_mhz) : "null",
                       known && clocks.watts > 0 ? number(clocks.watts) : "null",
                       known ? text_value(describe_throttle(clocks.throttle)) : "null");
}

std::string object_of(const ProblemReport& report, std::size_t index)
{
    const Measurement& measurement = report.measurements[index];
    const std::string name = text_value(measurement.contender);
    if (measurement.outcome == Outcome::not_run) {
        return fmt::format(R"({{"contender": {}, "outcome": "not run", "note": {}}})", name,
                           text_value(measurement.note));
    }
    const double median = summarize(measurement.seconds).median;
    return fmt::format(R"({{"contender": {}, "outcome": "{}", "note": {}, "gflops": {}, "ratio": {}, )"
                       R"("slower_than_rung_below": {}, "error_over_bound": {}, {}, {}}})",
                       name, measurement.outcome == Outcome::right ? "right" : "WRONG", text_value(measurement.note),
                       number(1e-9 * report.problem.flops() / median), number(speed_ratio(report, measurement)),
                       is_slower_than_rung_below(report, index), number(measurement.error_over_bound),
                       members_of(measurement.clocks), members_of(measurement.seconds, "us", 1e6));
}

std::string object_of(const ProblemReport& report)
{
    std::vector<std::string> measurements;
    for (std::size_t i = 0; i < report.measurements.size(); ++i) {
        measurements.push_back(object_of(report, i));
    }
    const auto& [shape, input, orders, output, padding, fusion, accumulation, sums, layer] = report.problem;
    return fmt::format(
        R"({{"m": {}, "n": {}, "k": {}, "input": "{}", "output": "{}", "orders": "{}", "padding": {}, "epilogue": "{}", "fp8_accumulation": {}, "f16_accumulation": {}, "layer": {}, "input_sets": {}, )"
        R"("exceeds_l2": {}, "products_per_sample": {}, "graph_replay": {}, "baseline": {}, )"
        "\"measurements\": [{}\n    ]}}",
        shape.m, shape.n, shape.k, tessera::to_string(input), tessera::to_string(output), to_string(orders), padding,
        to_string(fusion), is_float8(input) ? text_value(to_string(accumulation)) : "null",
        input == ElementType::f16 ? text_value(to_string(sums)) : "null", text_value(layer), report.input_sets,
        report.exceeds_cache, report.launches_per_sample, report.graph_replay, text_value(report.baseline),
        joined(measurements, "      "));
}

}  // namespace

std::string json_of(const Environment& environment, const std::vector<ProblemReport>& reports,
                    std::string_view benchmark)
{
    std::vector<std::string> results;
    for (const ProblemReport& report : reports) {
        results.push_back(object_of(report));
    }
    std::vector<std::string> summaries;
    for (const auto& list : {summarize_ratios(reports), summarize_groups(reports)}) {
        for (const RatioSummary& summary : list) {
            summaries.push_back(object_of(summary));
        }
    }
    return document(environment, benchmark, results, summaries);
}

std::string json_of(const Environment& environment, const std::vector<LaunchReport>& reports)
{
    std::vector<std::string> results;
    for (const LaunchReport& report : reports) {
        const Shape& shape = report.problem.shape;
        for (const LaunchMeasurement& measurement : report.measurements) {
            results.push_back(
                fmt::format(R"({{"kernel": {}, "m": {}, "n": {}, "k": {}, "launches_per_sample": {}, "launch": {}, )"
                            R"("ratio": {}, "heap_allocations": {}, {}}})",
                            text_value(report.kernel), shape.m, shape.n, shape.k, report.launches_per_sample,
                            text_value(measurement.name), number(time_ratio(report, measurement)),
                            number(measurement.heap_allocations), members_of(measurement.seconds, "ns", 1e9)));
        }
    }
    return document(environment, "launch", results);
}

}  // namespace tessera::bench
