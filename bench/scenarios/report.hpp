#pragma once

/// The reports of tessera-scenarios: text for people, JSON for programs, and a page with tables and charts.

#include <string>
#include <vector>

#include "report/report.hpp"
#include "scenarios/scenario.hpp"

namespace tessera::scenarios {

/// Returns the lines that `run` prints of one scenario.
std::string text_of(const Report& report);

/// Returns a JSON document; docs/scenarios.md describes it.
std::string json_of(const bench::Environment& environment, const std::vector<Report>& reports);

/// Returns one self-contained page.
/// @param emulated  true if the times are those of an emulated device, which the page says
std::string html_of(const bench::Environment& environment, const std::vector<Report>& reports, bool emulated);

/// "1.23 ms", "45.6 us"
std::string time_text(double seconds);

}  // namespace tessera::scenarios
