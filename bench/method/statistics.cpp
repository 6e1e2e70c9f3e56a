#include "method/statistics.hpp"

#include <algorithm>
#include <cmath>

namespace tessera::bench {

double percentile(const std::vector<double>& sorted, double fraction)
{
    const double position = fraction * static_cast<double>(sorted.size() - 1);
    const auto below = static_cast<std::size_t>(position);
    const std::size_t above = std::min(below + 1, sorted.size() - 1);
    return std::lerp(sorted[below], sorted[above], position - static_cast<double>(below));
}

Summary summarize(std::vector<double> samples)
{
    if (samples.empty()) {
        return {};
    }
    std::sort(samples.begin(), samples.end());
    return {samples.front(),          percentile(samples, 0.1), percentile(samples, 0.5),
            percentile(samples, 0.9), samples.back(),           samples.size()};
}

double geometric_mean(const std::vector<double>& ratios)
{
    double logarithms = 0;
    for (const double ratio : ratios) {
        logarithms += std::log(ratio);
    }
    return std::exp(logarithms / static_cast<double>(ratios.size()));
}

}  // namespace tessera::bench
