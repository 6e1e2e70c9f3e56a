#pragma once

/// What the reports of `tessera-bench gemm` say in one view: a row for each problem, and for each of our contenders its
/// speed against each of cuBLASLt's.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.hpp"

namespace tessera::bench {

/// The names of our contenders begin with this, those of peers do not.
inline constexpr std::string_view our_prefix = "tessera_";
inline constexpr std::string_view heuristic_name = "cublaslt_heuristic";
inline constexpr std::string_view best_name = "cublaslt_best_of_16";
inline constexpr std::string_view reader_name = "memory_read";

/// Product rate of the contender by its median, in FLOP/s; 0 if it has no samples or its result is wrong.
double flops_per_second(const ProblemReport& report, std::string_view contender);

/// Speed of one contender against another; 0 if one of them has no rate.
double speed_ratio(const ProblemReport& report, std::string_view contender, std::string_view peer);

/// The names of all contenders, in the order in which they appear; `ours` or the others.
std::vector<std::string> contender_names(const std::vector<ProblemReport>& reports, bool ours);

/// One of our contenders against one peer, over all problems that both have right results for.
struct RatioSummary {
    std::string contender;
    std::string peer;
    std::size_t problems = 0;
    double geometric_mean = 0;
    double lowest = 0;
    std::string lowest_problem;
};

/// All pairs that have at least one problem in common.
std::vector<RatioSummary> summarize_ratios(const std::vector<ProblemReport>& reports);

/// The first heuristic is one of the 16: where the winner of their race comes out slower in the end, the best is the
/// heuristic's measurement.
void settle_best(ProblemReport& report);

/// "4096x4096x4096 bf16:bf16 rc", and "ld+1" for matrices with gaps.
std::string name_of(const Problem& problem);

/// "cublaslt_best_of_16" is "cublaslt best of 16" to people.
std::string readable(std::string name);

/// The table in three pieces, so that rows can be printed as they come. All contenders must have been named before.
class GemmTable {
public:
    /// @param remarks  print what each contender chose, below the row
    GemmTable(std::vector<std::string> ours, std::vector<std::string> peers, bool remarks = false);

    std::string header() const;
    std::string row(const ProblemReport& report) const;
    static std::string footer(const std::vector<ProblemReport>& reports);

private:
    std::vector<std::string> ours_;
    std::vector<std::string> peers_;
    bool remarks_;
};

}  // namespace tessera::bench
