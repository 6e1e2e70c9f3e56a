#include "gemm/random_problems.hpp"

#include <algorithm>
#include <array>

#include "problem/random.hpp"

namespace tessera::bench {
namespace {

constexpr std::int64_t most_products = std::int64_t{1} << 42;
constexpr std::int64_t most_outputs = std::int64_t{1} << 28;
constexpr std::int64_t aligned_elements = 8;  // of 2 bytes: TMA's strides are multiples of 16 bytes

std::int64_t rounded_up(std::int64_t extent, std::int64_t step) { return (extent + step - 1) / step * step; }

Problem random_problem(RandomNumbers& random)
{
    Problem problem;
    problem.input = random.one_in(2) ? ElementType::bf16 : ElementType::f16;
    problem.output = problem.input;
    problem.orders = {random.one_in(2), random.one_in(2)};
    Shape& shape = problem.shape;
    do {
        // Layers have rounder extents than 8 elements: half of the problems are multiples of 64 in N and K.
        const std::int64_t step = random.one_in(2) ? 64 : aligned_elements;
        shape = {random.log_uniform(1, 16384), rounded_up(random.log_uniform(16, 32768), step),
                 rounded_up(random.log_uniform(16, 32768), step)};
        if (!problem.orders.a_row_major) {
            shape.m = rounded_up(shape.m, aligned_elements);  // it is A's leading dimension
        }
    } while (shape.m * shape.n > most_outputs || shape.m * shape.n * shape.k > most_products);
    if (random.one_in(8)) {
        problem.padding = 1 + static_cast<std::int64_t>(random.below(aligned_elements - 1));
    }
    return problem;
}

}  // namespace

std::vector<Problem> random_problems(std::uint64_t seed, std::size_t count)
{
    RandomNumbers random(seed);
    std::vector<Problem> problems;
    while (problems.size() < count) {
        const Problem problem = random_problem(random);
        if (std::find(problems.begin(), problems.end(), problem) == problems.end()) {
            problems.push_back(problem);
        }
    }
    return problems;
}

}  // namespace tessera::bench
