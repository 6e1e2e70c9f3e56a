#pragma once

/// The table of `tessera-bench gemm`: one row per problem, with the speed of each of Tessera's contenders relative to
/// each of cuBLASLt's.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.hpp"

namespace tessera::bench {

/// Prefix of the names of Tessera's contenders; peers do not have it.
inline constexpr std::string_view our_prefix = "tessera_";
inline constexpr std::string_view heuristic_name = "cublaslt_heuristic";
inline constexpr std::string_view best_name = "cublaslt_best_of_16";
inline constexpr std::string_view reader_name = "memory_read";

/// Rate of the contender by its median, in FLOP/s; 0 if it has no samples or a wrong result.
double flops_per_second(const ProblemReport& report, std::string_view contender);

/// Speed of one contender relative to another; 0 if one of them has no rate.
double speed_ratio(const ProblemReport& report, std::string_view contender, std::string_view peer);

/// Names of all contenders, ours or the others, in order of appearance.
std::vector<std::string> contender_names(const std::vector<ProblemReport>& reports, bool ours);

/// One of Tessera's contenders relative to one peer, over the problems of a group for which both have right results.
struct RatioSummary {
    std::string contender;
    std::string peer;
    std::string group;  ///< "bf16:bf16", "bias+relu"; empty: all problems
    std::size_t problems = 0;
    double geometric_mean = 0;
    double percentile_10 = 0;  ///< one problem in ten has a lower ratio
    double median = 0;
    double lowest = 0;
    std::string lowest_problem;
};

/// All pairs with at least one problem in common, over all problems.
std::vector<RatioSummary> summarize_ratios(const std::vector<ProblemReport>& reports);

/// The same for each pair of types and for each epilogue, where the problems have more than one. Follows the order of
/// `summarize_ratios`.
std::vector<RatioSummary> summarize_groups(const std::vector<ProblemReport>& reports);

/// "geometric mean 1.012 over 15 problems, median 1.020, p10 0.941, lowest 0.913 at 8192x28672x4096 bf16:bf16 rc"
std::string describe(const RatioSummary& summary);

/// "SM clock median 1755 MHz (1410 to 1980), power up to 700 W, limited by: power cap": over the results whose clock was
/// read. Empty if there is none.
std::string describe_clocks(const std::vector<ProblemReport>& reports);

/// The heuristic's first choice is one of the 16. If the winner of their race turns out slower in the end, the best is
/// the heuristic's measurement.
void settle_best(ProblemReport& report);

/// "4096x4096x4096 bf16:bf16 rc", with "ld+1" for matrices with gaps.
std::string name_of(const Problem& problem);
/// With the layer in parentheses, if the problem is one.
std::string full_name_of(const Problem& problem);

/// The name for people: "cublaslt best of 16" for "cublaslt_best_of_16".
std::string readable(std::string name);

/// The table in three parts, so that rows can be printed as they come. The constructor needs the names of all
/// contenders.
class GemmTable {
public:
    /// @param remarks  print each contender's choice below the row
    GemmTable(std::vector<std::string> ours, std::vector<std::string> peers, bool remarks = false);

    std::string header() const;
    std::string row(const ProblemReport& report) const;
    /// The summaries, groups below their pair.
    static std::string footer(const std::vector<ProblemReport>& reports);

private:
    std::vector<std::string> ours_;
    std::vector<std::string> peers_;
    bool remarks_;
};

}  // namespace tessera::bench
