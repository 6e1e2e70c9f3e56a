#pragma once

/// The measurements as plain data, and their three forms: a table for people, CSV and JSON for programs.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "method/clock_sampler.hpp"
#include "method/statistics.hpp"
#include "problem/problem.hpp"

namespace tessera::bench {

/// Names and values that the figures depend on: device, versions, date, seed.
using Environment = std::vector<std::pair<std::string, std::string>>;

enum class Outcome : std::uint8_t {
    right,    ///< measured, and the result is within its bound
    wrong,    ///< measured, but the result is wrong: `note` says where
    not_run,  ///< `note` says why
};

/// One contender on one problem.
struct Measurement {
    std::string contender;
    bool is_rung = false;  ///< belongs to the ladder and should beat the previous rung
    Outcome outcome = Outcome::not_run;
    std::string note;  ///< for `right`: the contender's choice, if any
    double error_over_bound = 0;
    std::vector<double> seconds;  ///< per product, one per sample
    ClockSummary clocks = {};     ///< during these samples
};

/// All contenders on one problem, the rungs of the ladder lowest first.
struct ProblemReport {
    Problem problem;
    std::size_t input_sets = 0;
    bool exceeds_cache = false;  ///< the sets together exceed twice the L2 cache
    std::size_t launches_per_sample = 0;
    bool graph_replay = false;
    std::string baseline;  ///< the contender that ratios refer to
    std::vector<Measurement> measurements;
};

/// One way to launch a kernel, in CPU time.
struct LaunchMeasurement {
    std::string name;
    std::vector<double> seconds;  ///< per launch, one per sample
    double heap_allocations = 0;  ///< per launch
    bool is_limited = true;       ///< `--max-ratio` holds for it
};

struct LaunchReport {
    Problem problem;
    std::size_t launches_per_sample = 0;
    std::vector<LaunchMeasurement> measurements;  ///< ratios refer to the first one
    std::string kernel = {};                      ///< the kernel that is launched, and its configuration
};

/// Returns true if a result is wrong that a contender with this prefix computed.
bool has_wrong_result(const std::vector<ProblemReport>& reports, std::string_view prefix);

/// Median speed relative to the baseline: above 1 is faster. 0 if one of them has no samples.
double speed_ratio(const ProblemReport& report, const Measurement& measurement);

/// Returns true if the measurement is a rung that is slower than the nearest measured rung below it.
bool is_slower_than_rung_below(const ProblemReport& report, std::size_t index);

/// Median time relative to the raw launch.
double time_ratio(const LaunchReport& report, const LaunchMeasurement& measurement);

std::string table_of(const ProblemReport& report);
std::string table_of(const LaunchReport& report);
std::string table_of(const Environment& environment);

/// `# name: value` lines with the environment and the summaries of ratios, then one row per contender. The last column
/// has all samples.
std::string csv_of(const Environment& environment, const std::vector<ProblemReport>& reports);
std::string csv_of(const Environment& environment, const std::vector<LaunchReport>& reports);

std::string json_of(const Environment& environment, const std::vector<ProblemReport>& reports,
                    std::string_view benchmark = "simt");
std::string json_of(const Environment& environment, const std::vector<LaunchReport>& reports);

}  // namespace tessera::bench
