#include <fmt/format.h>

#include <algorithm>

#include "report/gemm_summary.hpp"
#include "report/report.hpp"

namespace tessera::bench {
namespace {

/// RFC 4180: quoted if the text contains a separator, a quote or a line break.
std::string quoted(const std::string& text)
{
    if (text.find_first_of(",\"\r\n") == std::string::npos) {
        return text;
    }
    std::string result = "\"";
    for (const char character : text) {
        result += character;
        if (character == '"') {
            result += '"';
        }
    }
    return result + '"';
}

std::string header_of(const Environment& environment)
{
    std::string text;
    for (const auto& [name, value] : environment) {
        std::string line = value;
        std::replace(line.begin(), line.end(), '\n', ' ');
        text += fmt::format("# {}: {}\n", name, line);
    }
    return text;
}

/// One comment line per summary of ratios.
std::string summaries_of(const std::vector<ProblemReport>& reports)
{
    std::string text;
    std::vector<RatioSummary> summaries = summarize_ratios(reports);
    const std::vector<RatioSummary> groups = summarize_groups(reports);
    summaries.insert(summaries.end(), groups.begin(), groups.end());
    for (const RatioSummary& summary : summaries) {
        text += fmt::format("# {} / {}{}{}: {}\n", summary.contender, summary.peer, summary.group.empty() ? "" : ", ",
                            summary.group, describe(summary));
    }
    return text;
}

std::string samples_of(const std::vector<double>& seconds, double scale)
{
    std::string text;
    for (const double sample : seconds) {
        text += fmt::format("{}{:.6g}", text.empty() ? "" : ";", scale * sample);
    }
    return text;
}

/// Three fields; empty if unknown.
std::string clocks_of(const ClockSummary& clocks)
{
    if (clocks.readings == 0) {
        return ",,";
    }
    return fmt::format("{:.6g},{},{}", clocks.sm_mhz, clocks.watts == 0 ? "" : fmt::format("{:.6g}", clocks.watts),
                       describe_throttle(clocks.throttle));
}

std::string_view name_of(Outcome outcome)
{
    switch (outcome) {
        case Outcome::right: return "right";
        case Outcome::wrong: return "WRONG";
        case Outcome::not_run: break;
    }
    return "not run";
}

}  // namespace

std::string csv_of(const Environment& environment, const std::vector<ProblemReport>& reports)
{
    std::string text = header_of(environment) + summaries_of(reports);
    text +=
        "m,n,k,input,output,orders,padding,epilogue,fp8_accumulation,f16_accumulation,layer,input_sets,exceeds_l2,"
        "products_per_sample,"
        "graph_replay,"
        "contender,"
        "outcome,"
        "note,median_us,"
        "p10_us,p90_us,min_us,max_us,gflops,baseline,ratio,slower_than_rung_below,error_over_bound,sm_mhz,max_watts,"
        "throttle,"
        "samples_us,samples_sm_mhz\n";
    for (const ProblemReport& report : reports) {
        const auto& [shape, input, orders, output, padding, fusion, accumulation, sums, layer] = report.problem;
        for (std::size_t i = 0; i < report.measurements.size(); ++i) {
            const Measurement& measurement = report.measurements[i];
            text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}", shape.m, shape.n, shape.k,
                                tessera::to_string(input), tessera::to_string(output), to_string(orders), padding,
                                to_string(fusion), is_float8(input) ? to_string(accumulation) : "",
                                input == ElementType::f16 ? to_string(sums) : "", quoted(layer), report.input_sets,
                                report.exceeds_cache, report.launches_per_sample, report.graph_replay,
                                quoted(measurement.contender), name_of(measurement.outcome), quoted(measurement.note));
            if (measurement.seconds.empty()) {
                text += fmt::format(",,,,,,,{},,,,,,,,\n", quoted(report.baseline));
                continue;
            }
            const Summary seconds = summarize(measurement.seconds);
            text += fmt::format(",{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{},{:.6g},{},{:.6g},{},{},{}\n",
                                1e6 * seconds.median, 1e6 * seconds.percentile_10, 1e6 * seconds.percentile_90,
                                1e6 * seconds.minimum, 1e6 * seconds.maximum,
                                1e-9 * report.problem.flops() / seconds.median, quoted(report.baseline),
                                speed_ratio(report, measurement), is_slower_than_rung_below(report, i),
                                measurement.error_over_bound, clocks_of(measurement.clocks),
                                samples_of(measurement.seconds, 1e6), samples_of(measurement.clocks.samples_sm_mhz, 1));
        }
    }
    return text;
}

std::string csv_of(const Environment& environment, const std::vector<LaunchReport>& reports)
{
    std::string text = header_of(environment);
    text +=
        "kernel,m,n,k,launches_per_sample,launch,median_ns,p10_ns,p90_ns,min_ns,max_ns,ratio,heap_allocations,"
        "samples_ns\n";
    for (const LaunchReport& report : reports) {
        const Shape& shape = report.problem.shape;
        for (const LaunchMeasurement& measurement : report.measurements) {
            const Summary seconds = summarize(measurement.seconds);
            text += fmt::format(
                "{},{},{},{},{},{},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:.6g},{:g},{}\n", quoted(report.kernel), shape.m,
                shape.n, shape.k, report.launches_per_sample, quoted(measurement.name), 1e9 * seconds.median,
                1e9 * seconds.percentile_10, 1e9 * seconds.percentile_90, 1e9 * seconds.minimum, 1e9 * seconds.maximum,
                time_ratio(report, measurement), measurement.heap_allocations, samples_of(measurement.seconds, 1e9));
        }
    }
    return text;
}

}  // namespace tessera::bench
