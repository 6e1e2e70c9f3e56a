#include <fmt/format.h>

#include "scenarios/report.hpp"

namespace tessera::scenarios {
namespace {

void append(std::string& text, const char* entry, std::string_view what, const EntryTimes& times)
{
    text += fmt::format("  {:<10} {:>10}  {}\n", entry, time_text(median_of(times)), what);
    for (const Phase& phase : times.phases) {
        text +=
            fmt::format("    {:<24} {:>10} of the host{}\n", phase.name, time_text(phase.host_seconds),
                        phase.on_device ? fmt::format(" {:>10} of the device", time_text(phase.device_seconds)) : "");
    }
}

}  // namespace

std::string time_text(double seconds)
{
    if (seconds >= 1) {
        return fmt::format("{:.3f} s", seconds);
    }
    return seconds >= 1e-3 ? fmt::format("{:.3f} ms", seconds * 1e3) : fmt::format("{:.1f} us", seconds * 1e6);
}

std::string text_of(const Report& report)
{
    const Scenario& scenario = *report.scenario;
    std::string text = fmt::format("{}. {} ({})\n", scenario.number, scenario.title, scenario.name);
    if (!report.skipped.empty()) {
        return text + fmt::format("  skipped: {}\n", report.skipped);
    }
    if (!report.failure.empty()) {
        return text + fmt::format("  FAILED: {}\n", report.failure);
    }
    const Outcome& outcome = report.outcome;
    text += fmt::format("  {}\n", outcome.work);
    append(text, "baseline", scenario.baseline, outcome.baseline);
    append(text, "optimized", scenario.optimized, outcome.optimized);
    text += fmt::format("  {:.2f} times as fast\n", report.speedup());
    for (const Figure& figure : outcome.figures) {
        text += fmt::format("  {}: {:.4g} {}\n", figure.name, figure.value, figure.unit);
    }
    for (const Check& check : outcome.checks) {
        text += fmt::format("  {} {}: {:.3g} of the bound ({})\n", check.passed() ? "agrees" : "WRONG ", check.what,
                            check.error_over_bound, check.bound);
    }
    for (const std::string& note : outcome.notes) {
        text += fmt::format("  note: {}\n", note);
    }
    return text;
}

}  // namespace tessera::scenarios
