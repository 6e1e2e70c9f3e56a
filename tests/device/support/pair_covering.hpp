#pragma once

/// Covering designs: few combinations of many factors, such that any two values of any two factors occur together in
/// one of them.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <random>
#include <vector>

namespace tessera::test {

/// One level of each factor.
using Combination = std::vector<int>;

/// Returns combinations of factors with `levels[i]` levels each, so that every pair of levels of two factors occurs.
/// Greedy: each combination starts from a missing pair and chooses for each other factor the level that adds the most
/// pairs.
inline std::vector<Combination> pair_covering(const std::vector<int>& levels, std::mt19937_64& engine)
{
    const std::size_t factors = levels.size();
    std::vector<std::size_t> first(factors);  // index of a factor's level 0 among all levels of all factors
    std::exclusive_scan(levels.begin(), levels.end(), first.begin(), std::size_t{0});
    const std::size_t all = first.back() + static_cast<std::size_t>(levels.back());
    std::vector<bool> covered(all * all, false);
    const auto number = [&](std::size_t factor, int level) { return first[factor] + static_cast<std::size_t>(level); };
    const auto is_covered = [&](std::size_t f, int level_f, std::size_t g, int level_g) {
        const std::size_t one = number(f, level_f);
        const std::size_t other = number(g, level_g);
        return covered[std::min(one, other) * all + std::max(one, other)];
    };

    std::vector<Combination> combinations;
    std::vector<std::size_t> order(factors);
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t f = 0; f < factors; ++f) {
        for (std::size_t g = f + 1; g < factors; ++g) {
            for (int level_f = 0; level_f < levels[f]; ++level_f) {
                for (int level_g = 0; level_g < levels[g]; ++level_g) {
                    if (is_covered(f, level_f, g, level_g)) {
                        continue;
                    }
                    Combination combination(factors, -1);
                    combination[f] = level_f;
                    combination[g] = level_g;
                    std::shuffle(order.begin(), order.end(), engine);
                    for (const std::size_t h : order) {
                        if (combination[h] >= 0) {
                            continue;
                        }
                        const auto start = static_cast<int>(engine() % static_cast<std::uint64_t>(levels[h]));
                        int best_level = start;
                        int best_gain = -1;
                        for (int i = 0; i < levels[h]; ++i) {
                            const int level = (start + i) % levels[h];
                            int gain = 0;
                            for (std::size_t other = 0; other < factors; ++other) {
                                gain += combination[other] >= 0 && !is_covered(h, level, other, combination[other]);
                            }
                            if (gain > best_gain) {
                                best_gain = gain;
                                best_level = level;
                            }
                        }
                        combination[h] = best_level;
                    }
                    for (std::size_t left = 0; left < factors; ++left) {
                        for (std::size_t right = left + 1; right < factors; ++right) {
                            covered[number(left, combination[left]) * all + number(right, combination[right])] = true;
                        }
                    }
                    combinations.push_back(std::move(combination));
                }
            }
        }
    }
    return combinations;
}

}  // namespace tessera::test
