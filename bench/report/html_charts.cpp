#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "report/gemm_summary.hpp"
#include "report/html.hpp"
#include "report/svg.hpp"

namespace tessera::bench {
namespace {

constexpr double chart_width = 960;

/// Style classes of a contender's marks: Tessera's have colours of their own, peers are muted. With more contenders
/// than colours, the colours repeat.
std::string mark_of(const std::vector<std::string>& names, const std::string& name, bool ours)
{
    constexpr std::size_t colours = 4;
    const auto place = static_cast<std::size_t>(std::find(names.begin(), names.end(), name) - names.begin());
    return fmt::format("{}{}", ours ? "ours" : "peer", place % colours);
}

struct Series {
    std::string name;
    std::string mark;
};

/// All contenders, peers first, so that Tessera's are drawn over them.
std::vector<Series> series_of(const std::vector<ProblemReport>& reports)
{
    std::vector<Series> series;
    for (const bool ours : {false, true}) {
        const std::vector<std::string> names = contender_names(reports, ours);
        for (const std::string& name : names) {
            series.push_back({name, mark_of(names, name, ours)});
        }
    }
    return series;
}

void draw_legend(Svg& svg, const std::vector<Series>& series, Point at)
{
    for (const Series& one : series) {
        svg.circle({at.x, at.y - 4}, 5, "dot " + one.mark);
        const std::string name = readable(one.name);
        svg.text({at.x + 10, at.y}, "start", name);
        at.x += 34 + 7.2 * static_cast<double>(name.size());
    }
}

std::string tip_of(const ProblemReport& report, const Series& series)
{
    return fmt::format("{}\n{}: {:.1f} TFLOP/s", full_name_of(report.problem), readable(series.name),
                       flops_per_second(report, series.name) / 1e12);
}

/// Ratios of samples taken in the same round.
Summary ratios_of_rounds(const ProblemReport& report, const std::string& ours, const std::string& peer)
{
    const auto samples = [&](const std::string& name) -> const std::vector<double>& {
        return std::find_if(report.measurements.begin(), report.measurements.end(),
                            [&](const Measurement& measurement) { return measurement.contender == name; })
            ->seconds;
    };
    const std::vector<double>& mine = samples(ours);
    const std::vector<double>& theirs = samples(peer);
    std::vector<double> ratios;
    for (std::size_t round = 0; round < std::min(mine.size(), theirs.size()); ++round) {
        ratios.push_back(theirs[round] / mine[round]);
    }
    return summarize(ratios);
}

/// Returns the step of an axis from 0 to about `high`: 1, 2 or 5 times a power of ten, for four to ten steps.
double step_of(double high)
{
    const double power = std::pow(10.0, std::floor(std::log10(high)));
    const double leading = high / power;
    return power * (leading < 2 ? 0.2 : leading < 5 ? 0.5 : 1);
}

/// Returns the numbers from `low` to `high` that are a power of ten times one of `factors`, ascending.
std::vector<double> ticks_between(double low, double high, const std::vector<int>& factors)
{
    std::vector<double> ticks;
    const int last = static_cast<int>(std::floor(std::log10(high)));
    for (int exponent = static_cast<int>(std::floor(std::log10(low))); exponent <= last; ++exponent) {
        for (const int factor : factors) {
            if (const double tick = factor * std::pow(10.0, exponent); tick >= low && tick <= high) {
                ticks.push_back(tick);
            }
        }
    }
    return ticks;
}

/// FLOP per byte that must move: each operand once.
double intensity_of(const Problem& problem) { return problem.flops() / static_cast<double>(problem.bytes()); }

}  // namespace

std::string ratio_chart(const std::vector<ProblemReport>& reports)
{
    const std::vector<RatioSummary> pairs = summarize_ratios(reports);
    if (pairs.empty()) {
        return {};
    }
    double low = 0.9;
    double high = 1.1;
    for (const RatioSummary& pair : pairs) {
        for (const ProblemReport& report : reports) {
            if (const double ratio = speed_ratio(report, pair.contender, pair.peer); ratio > 0) {
                low = std::min(low, ratio);
                high = std::max(high, ratio);
            }
        }
    }
    low = low < 0.5 ? 0 : std::floor(low * 20) / 20;
    high = std::min(std::ceil(high * 20) / 20, 3.0);

    constexpr double label_width = 250;
    constexpr double head = 64;
    constexpr double row_height = 24;
    const double column_width = (chart_width - label_width) / static_cast<double>(pairs.size());
    const double bottom = head + row_height * static_cast<double>(reports.size());
    Svg svg(chart_width, bottom + 26, "Speed relative to cuBLASLt, per problem");
    for (std::size_t row = 0; row < reports.size(); ++row) {
        svg.text({0, head + row_height * (static_cast<double>(row) + 0.66)}, "start mono",
                 name_of(reports[row].problem));
    }
    for (std::size_t column = 0; column < pairs.size(); ++column) {
        const RatioSummary& pair = pairs[column];
        const double left = label_width + column_width * static_cast<double>(column);
        constexpr double number_width = 44;
        const Scale scale = Scale::linear(low, high, left + 12, left + column_width - number_width);
        svg.text({left + 12, 18}, "start strong", readable(pair.contender));
        svg.text({left + 12, 34}, "start", "vs. " + readable(pair.peer));
        svg.text({left + 12, 52}, pair.geometric_mean >= 1 ? "start good" : "start bad",
                 fmt::format("geometric mean {:.3f}, lowest {:.3f}", pair.geometric_mean, pair.lowest));
        for (const double tick : {low, 1.0, high}) {
            svg.line({scale(tick), head}, {scale(tick), bottom}, tick == 1 ? "axis" : "grid");
            svg.text({scale(tick), bottom + 16}, "middle", fmt::format("{:.2f}", tick));
        }
        for (std::size_t row = 0; row < reports.size(); ++row) {
            const double top = head + row_height * static_cast<double>(row);
            const double ratio = speed_ratio(reports[row], pair.contender, pair.peer);
            if (ratio == 0) {
                svg.text({scale(1) + 6, top + 16}, "start", "not measured");
                continue;
            }
            const Summary rounds = ratios_of_rounds(reports[row], pair.contender, pair.peer);
            const double begin = std::min(scale(1), scale(ratio));
            svg.rectangle({begin, top + 5}, std::max(std::abs(scale(ratio) - scale(1)), 1.0), 14,
                          ratio >= 1 ? "faster" : "slower",
                          fmt::format("{}\n{} / {}: {:.3f}\nrounds: {:.3f} to {:.3f} (10th to 90th percentile)",
                                      full_name_of(reports[row].problem), readable(pair.contender), readable(pair.peer),
                                      ratio, rounds.percentile_10, rounds.percentile_90));
            svg.line({scale(rounds.percentile_10), top + 12}, {scale(rounds.percentile_90), top + 12}, "whisker");
            svg.text({left + column_width - number_width + 6, top + 16}, "start mono", fmt::format("{:.3f}", ratio));
        }
    }
    return svg.finish();
}

std::string roofline_chart(const std::vector<ProblemReport>& reports, const Ceilings& ceilings, ElementType input)
{
    const Ceilings::Compute* compute = ceilings.find(input);
    if (compute == nullptr || ceilings.bytes_per_second == 0) {
        return {};
    }
    constexpr double height = 460;
    constexpr double left = 64;
    constexpr double right = chart_width - 16;
    constexpr double top = 40;
    constexpr double bottom = height - 48;
    const double peak = compute->flops_per_second;
    const double knee = peak / ceilings.bytes_per_second;
    double lowest_rate = peak / 10;
    double lowest_intensity = knee / 10;
    double highest_intensity = knee * 10;
    const std::vector<Series> series = series_of(reports);
    for (const ProblemReport& report : reports) {
        if (report.problem.input != input) {
            continue;
        }
        lowest_intensity = std::min(lowest_intensity, intensity_of(report.problem) / 1.5);
        highest_intensity = std::max(highest_intensity, intensity_of(report.problem) * 1.5);
        for (const Series& one : series) {
            if (const double rate = flops_per_second(report, one.name); rate > 0) {
                lowest_rate = std::min(lowest_rate, rate / 1.5);
            }
        }
    }
    const Scale x = Scale::logarithmic(lowest_intensity, highest_intensity, left, right);
    const Scale y = Scale::logarithmic(lowest_rate, peak * 1.5, bottom, top);
    Svg svg(chart_width, height, "Roofline");
    for (const double decade : ticks_between(lowest_intensity, highest_intensity, {1})) {
        svg.line({x(decade), top}, {x(decade), bottom}, "grid");
        svg.text({x(decade), bottom + 18}, "middle", fmt::format("{:.0f}", decade));
    }
    for (const double tick : ticks_between(lowest_rate, peak * 1.5, {1, 2, 5})) {
        svg.line({left, y(tick)}, {right, y(tick)}, "grid");
        svg.text({left - 8, y(tick) + 4}, "end", fmt::format("{:g}", tick / 1e12));
    }
    svg.text({left, bottom + 38}, "start", "FLOP per byte of A, B and D");
    svg.text({8, top - 12}, "start", "TFLOP/s");
    const Point start{lowest_intensity, lowest_intensity * ceilings.bytes_per_second};
    svg.polyline({{x(std::max(start.x, lowest_rate / ceilings.bytes_per_second)), y(std::max(start.y, lowest_rate))},
                  {x(knee), y(peak)},
                  {x(highest_intensity), y(peak)}},
                 "roof");
    svg.text({right, y(peak) - 8}, "end strong", fmt::format("{:.0f} TFLOP/s", peak / 1e12));
    svg.text({x(knee) - 14, y(peak * 0.93)}, "end strong",
             fmt::format("{:.2f} TB/s", ceilings.bytes_per_second / 1e12));
    for (const Series& one : series) {
        for (const ProblemReport& report : reports) {
            const double rate = flops_per_second(report, one.name);
            if (report.problem.input == input && rate > 0) {
                svg.circle({x(intensity_of(report.problem)), y(rate)}, 5, "dot " + one.mark, tip_of(report, one));
            }
        }
    }
    draw_legend(svg, series, {left + 80, top - 12});
    return svg.finish();
}

std::string sweep_chart(const std::vector<ProblemReport>& reports, ElementType input)
{
    // By extent, the first problem of each: other orders of the same cube belong to another comparison.
    std::map<std::int64_t, const ProblemReport*> cubes;
    double highest = 0;
    const std::vector<Series> series = series_of(reports);
    for (const ProblemReport& report : reports) {
        const Shape& shape = report.problem.shape;
        if (report.problem.input == input && shape.m == shape.n && shape.n == shape.k) {
            cubes.emplace(shape.m, &report);
            for (const Series& one : series) {
                highest = std::max(highest, flops_per_second(report, one.name));
            }
        }
    }
    constexpr std::size_t fewest_points = 3;
    if (cubes.size() < fewest_points || highest == 0) {
        return {};
    }
    constexpr double height = 400;
    constexpr double left = 64;
    constexpr double right = chart_width - 24;
    constexpr double top = 40;
    constexpr double bottom = height - 48;
    const double step = step_of(highest);
    const Scale x = Scale::logarithmic(static_cast<double>(cubes.begin()->first),
                                       static_cast<double>(cubes.rbegin()->first), left + 10, right);
    const int steps = static_cast<int>(std::ceil(highest / step));
    const Scale y = Scale::linear(0, step * steps, bottom, top);
    Svg svg(chart_width, height, "Rate by size");
    for (int i = 0; i <= steps; ++i) {
        const double tick = step * i;
        svg.line({left, y(tick)}, {right, y(tick)}, i == 0 ? "axis" : "grid");
        svg.text({left - 8, y(tick) + 4}, "end", fmt::format("{:g}", tick / 1e12));
    }
    constexpr double label_width = 40;
    double last_label = -label_width;
    for (const auto& [extent, report] : cubes) {
        const double at = x(static_cast<double>(extent));
        svg.line({at, bottom}, {at, bottom + 4}, "axis");
        if (at - last_label >= label_width) {
            svg.text({at, bottom + 18}, "middle", fmt::format("{}", extent));
            last_label = at;
        }
    }
    svg.text({left, bottom + 38}, "start", "M = N = K");
    svg.text({8, top - 12}, "start", "TFLOP/s");
    for (const Series& one : series) {
        std::vector<Point> points;
        for (const auto& [extent, report] : cubes) {
            if (const double rate = flops_per_second(*report, one.name); rate > 0) {
                points.push_back({x(static_cast<double>(extent)), y(rate)});
            }
        }
        svg.polyline(points, "curve " + one.mark);
        for (const auto& [extent, report] : cubes) {
            if (const double rate = flops_per_second(*report, one.name); rate > 0) {
                svg.circle({x(static_cast<double>(extent)), y(rate)}, 4, "dot " + one.mark, tip_of(*report, one));
            }
        }
    }
    draw_legend(svg, series, {left + 80, top - 12});
    return svg.finish();
}

}  // namespace tessera::bench
