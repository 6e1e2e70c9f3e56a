#include "report/tile_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <set>

#include "report/svg.hpp"

namespace tessera::bench {
namespace {

constexpr double width = 960;
constexpr double left = 90;
constexpr double top = 44;
constexpr double cell_height = 46;
constexpr int shades = 10;

double highest_of(const std::vector<TileRate>& rates)
{
    double highest = 0;
    for (const TileRate& rate : rates) {
        highest = std::max(highest, rate.flops_per_second);
    }
    return highest;
}

std::string in_teraflops(double flops_per_second)
{
    const double rate = flops_per_second * 1e-12;
    return rate >= 100 ? fmt::format("{:.0f}", rate) : fmt::format("{:.3g}", rate);
}

}  // namespace

std::string tile_chart(const std::vector<TileRate>& rates, int k, std::string_view label)
{
    std::set<int> rows;
    std::set<int> columns;
    for (const TileRate& rate : rates) {
        if (rate.k == k) {
            rows.insert(rate.m);
            columns.insert(rate.n);
        }
    }
    const double highest = highest_of(rates);
    if (rows.empty() || highest == 0) {
        return {};
    }
    const double cell_width = (width - left - 8) / static_cast<double>(columns.size());
    Svg svg(width, top + cell_height * static_cast<double>(rows.size()) + 30, label);
    const auto x_of = [&](int n) {
        return left + cell_width * static_cast<double>(std::distance(columns.begin(), columns.find(n)));
    };
    const auto y_of = [&](int m) {
        return top + cell_height * static_cast<double>(std::distance(rows.begin(), rows.find(m)));
    };
    for (const int n : columns) {
        svg.text({x_of(n) + cell_width / 2, top - 10}, "middle", fmt::format("{}", n));
    }
    for (const int m : rows) {
        svg.text({left - 10, y_of(m) + cell_height / 2 + 4}, "end", fmt::format("{}", m));
    }
    svg.text({8, top - 10}, "start", "rows");
    svg.text({width - 8, top - 28}, "end", "columns of a tile of D; TFLOP/s");
    for (const TileRate& rate : rates) {
        if (rate.k != k) {
            continue;
        }
        const bool was_run = rate.flops_per_second > 0;
        const int shade = std::min(static_cast<int>(rate.flops_per_second / highest * shades), shades - 1);
        const Point corner{x_of(rate.n), y_of(rate.m)};
        const std::string tile = fmt::format("{}x{}x{}", rate.m, rate.n, rate.k);
        svg.rectangle(corner, cell_width, cell_height, was_run ? fmt::format("heat{}", shade) : "none",
                      was_run ? fmt::format("{}: {} TFLOP/s", tile, in_teraflops(rate.flops_per_second))
                              : fmt::format("{}: {}", tile, rate.note));
        svg.text({corner.x + cell_width / 2, corner.y + cell_height / 2 + 4},
                 rate.flops_per_second == highest ? "middle strong" : "middle",
                 was_run ? in_teraflops(rate.flops_per_second) : "-");
    }
    return svg.finish();
}

std::string tile_row(const TileRate& rate)
{
    return fmt::format("| {}x{}x{} | {} |\n", rate.m, rate.n, rate.k,
                       rate.flops_per_second > 0 ? in_teraflops(rate.flops_per_second) : "-: " + rate.note);
}

}  // namespace tessera::bench
