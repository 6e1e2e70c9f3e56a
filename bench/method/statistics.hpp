#pragma once

/// What is said about a set of timings: the median and the spread. Means are left out: one interrupted sample would
/// move them.

#include <cstddef>
#include <vector>

namespace tessera::bench {

struct Summary {
    double minimum = 0;
    double percentile_10 = 0;
    double median = 0;
    double percentile_90 = 0;
    double maximum = 0;
    std::size_t count = 0;
};

/// The value below which `fraction` (0 to 1) of the samples lie, linear between neighbouring samples. `sorted` is
/// ascending and not empty.
double percentile(const std::vector<double>& sorted, double fraction);

/// All zero for no samples.
Summary summarize(std::vector<double> samples);

/// The n-th root of the product: what ratios have as their mean. `ratios` are positive and not empty.
double geometric_mean(const std::vector<double>& ratios);

}  // namespace tessera::bench
