#include "report/gemm_summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace tessera::bench {
namespace {

constexpr int problem_width = 36;

std::string without_prefix(const std::string& name)
{
    const std::size_t first = name.find('_');
    return readable(first == std::string::npos ? name : name.substr(first + 1));
}

const Measurement* find(const ProblemReport& report, std::string_view contender)
{
    const auto found = std::find_if(report.measurements.begin(), report.measurements.end(),
                                    [&](const Measurement& measurement) { return measurement.contender == contender; });
    return found == report.measurements.end() ? nullptr : &*found;
}

int width_of(const std::string& name) { return std::max(8, static_cast<int>(readable(name).size())); }

std::string ratio_title(const std::string& ours, const std::string& peer)
{
    return fmt::format("{} / {}", without_prefix(ours), without_prefix(peer));
}

/// "f8e4m3:bf16 two-level": how sums are kept counts as a type.
std::string types_of(const Problem& problem)
{
    const bool is_two_level = is_float8(problem.input) && problem.accumulation == Fp8Accumulation::two_level;
    const bool sums_in_f16 = problem.input == ElementType::f16 && problem.sums == F16Accumulation::in_f16;
    return to_string(Types{problem.input, problem.output}) + (is_two_level  ? " two-level"
                                                              : sums_in_f16 ? " f16-sums"
                                                                            : "");
}
std::string epilogue_of(const Problem& problem) { return std::string(to_string(problem.fusion)); }

/// The different names that problems have, in order of appearance.
std::vector<std::string> names_in(const std::vector<ProblemReport>& reports,
                                  std::string (*name_of_problem)(const Problem&))
{
    std::vector<std::string> names;
    for (const ProblemReport& report : reports) {
        const std::string name = name_of_problem(report.problem);
        if (std::find(names.begin(), names.end(), name) == names.end()) {
            names.push_back(name);
        }
    }
    return names;
}

/// Summaries of all pairs over the problems for which `belongs` returns true.
std::vector<RatioSummary> summaries_of(const std::vector<ProblemReport>& reports, const std::string& group,
                                       const std::function<bool(const Problem&)>& belongs)
{
    std::vector<RatioSummary> summaries;
    for (const std::string& ours : contender_names(reports, true)) {
        for (const std::string& peer : contender_names(reports, false)) {
            RatioSummary summary;
            summary.contender = ours;
            summary.peer = peer;
            summary.group = group;
            summary.lowest = std::numeric_limits<double>::infinity();
            std::vector<double> ratios;
            for (const ProblemReport& report : reports) {
                const double ratio = belongs(report.problem) ? speed_ratio(report, ours, peer) : 0;
                if (ratio == 0) {
                    continue;
                }
                ratios.push_back(ratio);
                if (ratio < summary.lowest) {
                    summary.lowest = ratio;
                    summary.lowest_problem = full_name_of(report.problem);
                }
            }
            if (!ratios.empty()) {
                const Summary spread = summarize(ratios);
                summary.problems = ratios.size();
                summary.geometric_mean = geometric_mean(ratios);
                summary.percentile_10 = spread.percentile_10;
                summary.median = spread.median;
                summaries.push_back(std::move(summary));
            }
        }
    }
    return summaries;
}

}  // namespace

double flops_per_second(const ProblemReport& report, std::string_view contender)
{
    const Measurement* measurement = find(report, contender);
    if (measurement == nullptr || measurement->outcome != Outcome::right || measurement->seconds.empty()) {
        return 0;
    }
    return report.problem.flops() / summarize(measurement->seconds).median;
}

double speed_ratio(const ProblemReport& report, std::string_view contender, std::string_view peer)
{
    const double theirs = flops_per_second(report, peer);
    return theirs == 0 ? 0 : flops_per_second(report, contender) / theirs;
}

std::vector<std::string> contender_names(const std::vector<ProblemReport>& reports, bool ours)
{
    std::vector<std::string> names;
    for (const ProblemReport& report : reports) {
        for (const Measurement& measurement : report.measurements) {
            if (measurement.contender.starts_with(our_prefix) == ours &&
                std::find(names.begin(), names.end(), measurement.contender) == names.end()) {
                names.push_back(measurement.contender);
            }
        }
    }
    return names;
}

std::vector<RatioSummary> summarize_ratios(const std::vector<ProblemReport>& reports)
{
    return summaries_of(reports, {}, [](const Problem&) { return true; });
}

std::vector<RatioSummary> summarize_groups(const std::vector<ProblemReport>& reports)
{
    std::vector<RatioSummary> groups;
    for (const auto& [name_of_group, names] :
         {std::pair{&types_of, names_in(reports, types_of)}, std::pair{&epilogue_of, names_in(reports, epilogue_of)}}) {
        for (const std::string& name : names.size() > 1 ? names : std::vector<std::string>()) {
            for (RatioSummary& summary :
                 summaries_of(reports, name, [&](const Problem& problem) { return name_of_group(problem) == name; })) {
                groups.push_back(std::move(summary));
            }
        }
    }
    return groups;
}

std::string describe(const RatioSummary& summary)
{
    return fmt::format("geometric mean {:.3f} over {} problem{}, median {:.3f}, p10 {:.3f}, lowest {:.3f} at {}",
                       summary.geometric_mean, summary.problems, summary.problems == 1 ? "" : "s", summary.median,
                       summary.percentile_10, summary.lowest, summary.lowest_problem);
}

std::string describe_clocks(const std::vector<ProblemReport>& reports)
{
    std::vector<DeviceReading> readings;
    for (const ProblemReport& report : reports) {
        for (const Measurement& measurement : report.measurements) {
            if (const ClockSummary& clocks = measurement.clocks; clocks.readings > 0) {
                readings.push_back({clocks.sm_mhz, clocks.watts, clocks.throttle});
            }
        }
    }
    if (readings.empty()) {
        return {};
    }
    const auto [slowest, fastest] = std::minmax_element(
        readings.begin(), readings.end(),
        [](const DeviceReading& one, const DeviceReading& other) { return one.sm_mhz < other.sm_mhz; });
    const ClockSummary all = summarize_clocks(readings);
    return fmt::format("SM clock median {:.0f} MHz ({:.0f} to {:.0f}), power {}, limited by: {}", all.sm_mhz,
                       slowest->sm_mhz, fastest->sm_mhz,
                       all.watts == 0 ? "unknown" : fmt::format("up to {:.0f} W", all.watts),
                       describe_throttle(all.throttle));
}

void settle_best(ProblemReport& report)
{
    if (flops_per_second(report, heuristic_name) > flops_per_second(report, best_name)) {
        const Measurement heuristic = *find(report, heuristic_name);
        for (Measurement& measurement : report.measurements) {
            if (measurement.contender == best_name) {
                measurement = heuristic;
                measurement.contender = best_name;
                measurement.note = "same as the heuristic";
            }
        }
    }
}

std::string readable(std::string name)
{
    std::replace(name.begin(), name.end(), '_', ' ');
    return name;
}

std::string name_of(const Problem& problem)
{
    return fmt::format("{} {} {}{}{}", to_string(problem.shape), types_of(problem), to_string(problem.orders),
                       problem.padding == 0 ? "" : fmt::format(" ld+{}", problem.padding),
                       problem.fusion == Fusion::none ? "" : fmt::format(" {}", to_string(problem.fusion)));
}

std::string full_name_of(const Problem& problem)
{
    return problem.layer.empty() ? name_of(problem) : fmt::format("{} ({})", name_of(problem), problem.layer);
}

GemmTable::GemmTable(std::vector<std::string> ours, std::vector<std::string> peers, bool remarks)
    : ours_(std::move(ours)), peers_(std::move(peers)), remarks_(remarks)
{}

std::string GemmTable::header() const
{
    std::string text = fmt::format("Median TFLOP/s, and speed ratios\n{:<{}}", "MxNxK in:out orders", problem_width);
    for (const auto* names : {&ours_, &peers_}) {
        for (const std::string& name : *names) {
            text += fmt::format("  {:>{}}", readable(name), width_of(name));
        }
    }
    for (const std::string& ours : ours_) {
        for (const std::string& peer : peers_) {
            text += fmt::format("  {}", ratio_title(ours, peer));
        }
    }
    return text;
}

std::string GemmTable::row(const ProblemReport& report) const
{
    std::string text = fmt::format("{:<{}}", name_of(report.problem), problem_width);
    std::string remarks;
    for (const auto* names : {&ours_, &peers_}) {
        for (const std::string& name : *names) {
            const double rate = flops_per_second(report, name) / 1e12;
            const Measurement* measurement = find(report, name);
            const bool wrong = measurement != nullptr && measurement->outcome == Outcome::wrong;
            const std::string cell = wrong       ? "WRONG"
                                     : rate == 0 ? "-"
                                                 : fmt::format("{:.{}f}", rate, rate < 10 ? 3 : 1);
            text += fmt::format("  {:>{}}", cell, width_of(name));
            if (measurement != nullptr && !measurement->note.empty() &&
                (remarks_ || measurement->outcome != Outcome::right)) {
                remarks += fmt::format("\n    {}: {}", readable(name), measurement->note);
            }
        }
    }
    for (const std::string& ours : ours_) {
        for (const std::string& peer : peers_) {
            const double ratio = speed_ratio(report, ours, peer);
            text += fmt::format("  {:>{}}", ratio == 0 ? "-" : fmt::format("{:.3f}", ratio),
                                ratio_title(ours, peer).size());
        }
    }
    if (!report.problem.layer.empty()) {
        text += "  " + report.problem.layer;
    }
    return text + remarks;
}

std::string GemmTable::footer(const std::vector<ProblemReport>& reports)
{
    std::string text;
    const std::vector<RatioSummary> groups = summarize_groups(reports);
    for (const RatioSummary& summary : summarize_ratios(reports)) {
        text += fmt::format("{} / {}: {}\n", readable(summary.contender), readable(summary.peer), describe(summary));
        for (const RatioSummary& group : groups) {
            if (group.contender == summary.contender && group.peer == summary.peer) {
                text += fmt::format("    {}: {}\n", group.group, describe(group));
            }
        }
    }
    return text;
}

}  // namespace tessera::bench
