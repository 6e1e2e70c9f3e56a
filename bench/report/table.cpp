#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/report.hpp"

namespace tessera::bench {
namespace {

const Measurement* find(const ProblemReport& report, const std::string& contender)
{
    const auto found = std::find_if(report.measurements.begin(), report.measurements.end(),
                                    [&](const Measurement& measurement) { return measurement.contender == contender; });
    return found == report.measurements.end() ? nullptr : &*found;
}

/// A bar of up to 20 characters for ratios up to 1, and a plus sign for more.
std::string bar(double ratio)
{
    constexpr double width = 20;
    return std::string(static_cast<std::size_t>(std::lround(width * std::min(ratio, 1.0))), '#') +
           (ratio > 1.05 ? "+" : "");
}

/// At least three significant digits and never an exponent, so that columns line up.
std::string rate(double flops_per_second)
{
    const double tera = flops_per_second / 1e12;
    return fmt::format("{:.{}f}", tera, tera < 1 ? 4 : 2);
}

std::string row_of(const ProblemReport& report, std::size_t index)
{
    const Measurement& measurement = report.measurements[index];
    if (measurement.outcome == Outcome::not_run) {
        return fmt::format("  {:<24} {:>12}  {}\n", measurement.contender, "-", measurement.note);
    }
    const Summary seconds = summarize(measurement.seconds);
    const double ratio = speed_ratio(report, measurement);
    std::string row = fmt::format("{} {:<24} {:>12.2f} {:>12.2f} {:>12.2f} {:>7} {:>9} {:>9.4f} {}",
                                  is_slower_than_rung_below(report, index) ? '!' : ' ', measurement.contender,
                                  1e6 * seconds.median, 1e6 * seconds.percentile_10, 1e6 * seconds.percentile_90,
                                  seconds.count, rate(report.problem.flops() / seconds.median), ratio, bar(ratio));
    if (measurement.outcome == Outcome::wrong) {
        row += fmt::format("\n    WRONG: {}", measurement.note);
    }
    return row + "\n";
}

}  // namespace

bool has_wrong_result(const std::vector<ProblemReport>& reports, std::string_view prefix)
{
    return std::ranges::any_of(reports, [&](const ProblemReport& report) {
        return std::ranges::any_of(report.measurements, [&](const Measurement& measurement) {
            return measurement.outcome == Outcome::wrong && measurement.contender.starts_with(prefix);
        });
    });
}

double speed_ratio(const ProblemReport& report, const Measurement& measurement)
{
    const Measurement* baseline = find(report, report.baseline);
    if (baseline == nullptr || baseline->seconds.empty() || measurement.seconds.empty()) {
        return 0;
    }
    return summarize(baseline->seconds).median / summarize(measurement.seconds).median;
}

bool is_slower_than_rung_below(const ProblemReport& report, std::size_t index)
{
    const Measurement& rung = report.measurements[index];
    if (!rung.is_rung || rung.seconds.empty()) {
        return false;
    }
    while (index-- > 0) {
        const Measurement& below = report.measurements[index];
        if (below.is_rung && !below.seconds.empty()) {
            return summarize(rung.seconds).median > summarize(below.seconds).median;
        }
    }
    return false;
}

double time_ratio(const LaunchReport& report, const LaunchMeasurement& measurement)
{
    return summarize(measurement.seconds).median / summarize(report.measurements.front().seconds).median;
}

std::string table_of(const ProblemReport& report)
{
    const Problem& problem = report.problem;
    const auto order = [](bool row_major) { return row_major ? "row-major" : "column-major"; };
    std::string text =
        fmt::format("{} (MxNxK), {} -> f32, A {}, B {}\n", to_string(problem.shape), tessera::to_string(problem.input),
                    order(problem.orders.a_row_major), order(problem.orders.b_row_major));
    text += fmt::format("  {} input sets of {:.3g} MiB{}, {} products per sample{}\n", report.input_sets,
                        static_cast<double>(problem.bytes()) / (1 << 20),
                        report.exceeds_cache ? "" : " (they fit in the L2 cache)", report.launches_per_sample,
                        report.graph_replay ? ", replayed from a graph" : "");
    text += fmt::format("  {:<24} {:>12} {:>12} {:>12} {:>7} {:>9} {:>9}\n", "contender", "median us", "p10 us",
                        "p90 us", "samples", "TFLOP/s", "ratio");
    bool any_slower = false;
    for (std::size_t i = 0; i < report.measurements.size(); ++i) {
        text += row_of(report, i);
        any_slower = any_slower || is_slower_than_rung_below(report, i);
    }
    text += fmt::format("  ratio: speed relative to {}\n", report.baseline);
    if (any_slower) {
        text += "  !: slower than the rung below\n";
    }
    return text;
}

std::string table_of(const LaunchReport& report)
{
    std::string text = fmt::format(
        "{}{}{} (MxNxK), {} launches per sample\n  {:<32} {:>10} {:>10} {:>10} {:>8} {:>12}\n", report.kernel,
        report.kernel.empty() ? "" : ": ", to_string(report.problem.shape), report.launches_per_sample,
        "CPU time per launch", "median ns", "p10 ns", "p90 ns", "ratio", "allocations");
    for (const LaunchMeasurement& measurement : report.measurements) {
        const Summary seconds = summarize(measurement.seconds);
        text += fmt::format("  {:<32} {:>10.0f} {:>10.0f} {:>10.0f} {:>8.3f} {:>12g}\n", measurement.name,
                            1e9 * seconds.median, 1e9 * seconds.percentile_10, 1e9 * seconds.percentile_90,
                            time_ratio(report, measurement), measurement.heap_allocations);
    }
    return text;
}

std::string table_of(const Environment& environment)
{
    std::string text;
    for (const auto& [name, value] : environment) {
        text += fmt::format("{:<16} {}\n", name, value);
    }
    return text;
}

}  // namespace tessera::bench
