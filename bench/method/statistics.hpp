#pragma once

/// Summary of a set of timings: the median and the spread. There is no mean, because one interrupted sample would
/// change it.

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

/// The value below which `fraction` (0 to 1) of the samples are, interpolated linearly. `sorted` is ascending and not
/// empty.
double percentile(const std::vector<double>& sorted, double fraction);

/// All fields are zero if there are no samples.
Summary summarize(std::vector<double> samples);

/// The n-th root of the product, which is the right mean for ratios. `ratios` are positive and not empty.
double geometric_mean(const std::vector<double>& ratios);

}  // namespace tessera::bench
