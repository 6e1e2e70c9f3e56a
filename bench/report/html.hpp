#pragma once

/// The report of `tessera-bench gemm` as one self-contained HTML file: style and charts are inside, there is no script,
/// and it follows the reader's choice of light or dark.

#include <string>
#include <string_view>
#include <vector>

#include "report/report.hpp"

namespace tessera::bench {

/// The device's peak rates, and their sources.
struct Ceilings {
    struct Compute {
        ElementType input;
        double flops_per_second;
        std::string source;
    };
    std::vector<Compute> compute;  ///< by the type of A and B
    double bytes_per_second = 0;   ///< of memory; 0: unknown
    std::string bytes_source;

    /// Returns null if there is none for that type.
    const Compute* find(ElementType input) const;
};

/// Fills in the missing ceilings: for each type without one, the rate of its fastest product.
Ceilings completed(Ceilings given, const std::vector<ProblemReport>& reports);

struct GemmDocument {
    const Environment& environment;
    const std::string& method;
    const std::vector<ProblemReport>& reports;
    Ceilings ceilings;
};

std::string html_of(const GemmDocument& document);

/// A page in the style of the report.
std::string html_page(std::string_view title, std::string_view body);
/// A heading, a chart and what to know of it, or nothing if there is no chart.
std::string html_section(std::string_view title, std::string_view chart, std::string_view caption);

// The charts, each an SVG element, or empty if there is nothing to draw.

/// For each problem and pair of contenders, a bar from 1 to the ratio of speeds, with a line from the 10th to the 90th
/// percentile of the rounds' ratios.
std::string ratio_chart(const std::vector<ProblemReport>& reports);

/// Rates against FLOP per byte that must move, below the two ceilings.
std::string roofline_chart(const std::vector<ProblemReport>& reports, const Ceilings& ceilings, ElementType input);

/// Rates of the cubes of one type against their extent.
std::string sweep_chart(const std::vector<ProblemReport>& reports, ElementType input);

}  // namespace tessera::bench
