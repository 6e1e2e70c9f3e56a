#pragma once

/// The report of `tessera-bench gemm` as one HTML file that needs nothing besides itself: style and drawings are
/// inside, there is no script, and it follows the reader's choice of light or dark.

#include <string>
#include <vector>

#include "report/report.hpp"

namespace tessera::bench {

/// The most that the device can do, and how that is known.
struct Ceilings {
    struct Compute {
        ElementType input;
        double flops_per_second;
        std::string source;
    };
    std::vector<Compute> compute;  ///< by the type of A and B
    double bytes_per_second = 0;   ///< of memory; 0: not known
    std::string bytes_source;

    /// Null if there is none for that type.
    const Compute* find(ElementType input) const;
};

/// Adds what is missing: for each type of the reports without a ceiling, the fastest product among them.
Ceilings completed(Ceilings given, const std::vector<ProblemReport>& reports);

struct GemmDocument {
    const Environment& environment;
    const std::string& method;
    const std::vector<ProblemReport>& reports;
    Ceilings ceilings;
};

std::string html_of(const GemmDocument& document);

// The drawings, each an SVG element, or empty if there is nothing to draw.

/// For each problem and pair of contenders a bar from 1 to the ratio of speeds, the 10th to the 90th percentile of the
/// rounds' ratios on it.
std::string ratio_chart(const std::vector<ProblemReport>& reports);

/// Rates against FLOP per byte of operands that must move at least, under the two ceilings.
std::string roofline_chart(const std::vector<ProblemReport>& reports, const Ceilings& ceilings, ElementType input);

/// Rates of the cubes of one type against their extent.
std::string sweep_chart(const std::vector<ProblemReport>& reports, ElementType input);

}  // namespace tessera::bench
