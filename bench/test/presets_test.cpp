/// Tests of the lists of problems.

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "gemm/model_layers.hpp"
#include "gemm/presets.hpp"
#include "problem/problem.hpp"
#include "problem/random.hpp"
#include "report/gemm_summary.hpp"

namespace tessera::bench {
namespace {

std::vector<std::string> names_of(const std::vector<Problem>& problems)
{
    std::vector<std::string> names;
    for (const Problem& problem : problems) {
        names.push_back(name_of(problem));
    }
    return names;
}

TEST_CASE("each preset has problems, and none stands twice")
{
    const std::vector<std::string_view> names = preset_names();
    CHECK(std::set<std::string_view>(names.begin(), names.end()).size() == names.size());
    for (const std::string_view name : names) {
        CAPTURE(name);
        const std::vector<Problem> problems = preset(name);
        CHECK(!problems.empty());
        for (std::size_t i = 0; i < problems.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                CHECK_FALSE(problems[i] == problems[j]);
            }
        }
    }
    CHECK(preset("hopper").size() == 15);
    CHECK(preset("layouts").size() == 4);
    CHECK(preset("odd").back().a_leading_dimension() == 4097);
    CHECK(preset("fp8").front().input == ElementType::f8e4m3);
    CHECK(preset("fp8").front().output == ElementType::bf16);
    CHECK_THROWS_AS(preset("no such preset"), std::invalid_argument);
}

TEST_CASE("every layer of the models has a name of its own, and extents of its own")
{
    std::set<std::tuple<std::int64_t, std::int64_t>> extents;
    std::set<std::string> names;
    for (const ModelLayer& layer : model_layers()) {
        CAPTURE(layer.family);
        CAPTURE(layer.layer);
        CHECK(extents.emplace(layer.n, layer.k).second);
        CHECK(names.insert(std::string(layer.family) + "/" + std::string(layer.layer)).second);
        CHECK(layer.n >= 1);
        CHECK(layer.n <= max_extent);
        CHECK(layer.k >= 1);
        CHECK(layer.k <= max_extent);
    }
    CHECK(model_layers().size() == 123);  // README.md says so
}

TEST_CASE("the list of models has each layer once, at counts of tokens from 1 to 16384")
{
    const std::vector<Problem> problems = preset("models");
    CHECK(problems.size() == model_layers().size());
    std::map<std::int64_t, int> tokens;
    for (const Problem& problem : problems) {
        CAPTURE(name_of(problem));
        CHECK(!problem.layer.empty());
        CHECK(full_name_of(problem) == name_of(problem) + " (" + problem.layer + ")");
        CHECK(problem.d_size() <= std::size_t{1} << 28);
        ++tokens[problem.shape.m];
    }
    CHECK(tokens.begin()->first == 1);
    CHECK(tokens.rbegin()->first == 16384);
    CHECK(tokens.size() == 13);
    for (const auto& [count, layers] : tokens) {
        CAPTURE(count);
        CHECK(layers >= 5);
    }
}

TEST_CASE("models take counts of tokens, types and orders")
{
    PresetOptions options;
    options.tokens = {3, 500};
    options.types = {{ElementType::f8e4m3, ElementType::bf16}, {ElementType::f16, ElementType::f16}};
    options.orders = {{true, true}};
    const std::vector<Problem> problems = preset("models", options);
    CHECK(problems.size() == 4 * model_layers().size());
    CHECK(problems.front().shape == Shape{3, 6144, 4096});
    CHECK(problems.front().input == ElementType::f8e4m3);
    CHECK(problems.front().layer == "Llama 3 8B QKV");
    CHECK(problems.back().shape.m == 500);
    CHECK(problems.back().input == ElementType::f16);
    CHECK(problems.back().orders == Orders{true, true});
}

TEST_CASE("the random list depends on the seed alone, and a longer one begins with the shorter one")
{
    PresetOptions options;
    options.count = 400;
    const std::vector<std::string> names = names_of(preset("random", options));
    CHECK(names_of(preset("random", options)) == names);
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == 400);
    // These do not change with the compiler or the standard library.
    CHECK(names[0] == "13x29120x192 bf16:bf16 rr");
    CHECK(names[399] == "296x12448x1144 f16:f16 cc");
    options.count = 10;
    CHECK(names_of(preset("random", options)) == std::vector<std::string>(names.begin(), names.begin() + 10));
    options.seed = 2;
    CHECK(names_of(preset("random", options)).front() != names.front());
}

TEST_CASE("the random list has both types, all orders, all sizes, and some rows that TMA cannot address")
{
    PresetOptions options;
    options.count = 400;
    std::map<std::string, int> kinds;
    int with_gaps = 0;
    std::array<int, 3> m_below{};
    for (const Problem& problem : preset("random", options)) {
        CAPTURE(name_of(problem));
        const auto& [m, n, k] = problem.shape;
        ++kinds[to_string(Types{problem.input, problem.output}) + to_string(problem.orders)];
        CHECK(m >= 1);
        CHECK(m <= 16384);
        CHECK(n >= 16);
        CHECK(n <= 32768);
        CHECK(k >= 16);
        CHECK(k <= 32768);
        CHECK(m * n <= std::int64_t{1} << 28);
        CHECK(m * n * k <= std::int64_t{1} << 42);
        const bool aligned = problem.a_leading_dimension() % 8 == 0 && problem.b_leading_dimension() % 8 == 0;
        CHECK(aligned == (problem.padding == 0));
        with_gaps += problem.padding != 0 ? 1 : 0;
        m_below[0] += m < 32 ? 1 : 0;
        m_below[1] += m < 1024 ? 1 : 0;
        m_below[2] += m < 8192 ? 1 : 0;
    }
    CHECK(kinds.size() == 8);
    for (const auto& [kind, problems] : kinds) {
        CAPTURE(kind);
        CHECK(problems >= 25);  // 50 expected
    }
    CHECK(with_gaps >= 25);
    CHECK(with_gaps <= 100);
    // 5 octaves of 14 are below 32, 10 below 1024, 13 below 8192; large products are left out more often.
    CHECK(m_below[0] >= 110);
    CHECK(m_below[1] - m_below[0] >= 100);
    CHECK(m_below[2] - m_below[1] >= 50);
    CHECK(400 - m_below[2] >= 4);
}

TEST_CASE("one problem in four is held out, by its own facts alone")
{
    PresetOptions options;
    options.count = 1000;
    int held_out = 0;
    for (const Problem& problem : preset("random", options)) {
        held_out += split_of(problem) == Split::held_out ? 1 : 0;
        Problem same = problem;
        same.fusion = Fusion::bias_relu;
        same.layer = "a layer";
        CHECK(split_of(same) == split_of(problem));
    }
    CHECK(held_out >= 200);
    CHECK(held_out <= 300);
    // A problem that changes its half would spoil every fit before it.
    const std::vector<Problem> shapes = preset("hopper");
    CHECK(split_of(shapes[0]) == Split::fit);
    CHECK(std::count_if(shapes.begin(), shapes.end(),
                        [](const Problem& problem) { return split_of(problem) == Split::held_out; }) == 3);
    CHECK(parse_split("fit") == Split::fit);
    CHECK(parse_split("held-out") == Split::held_out);
    CHECK_THROWS_WITH_AS(parse_split("heldout"), "'heldout' is not a half of a list: write fit or held-out",
                         std::invalid_argument);
}

TEST_CASE("log-uniform numbers reach both ends, and every octave as often")
{
    RandomNumbers random(3);
    std::array<int, 10> octaves{};
    std::int64_t least = 1024;
    std::int64_t largest = 0;
    for (int i = 0; i < 10000; ++i) {
        const std::int64_t value = random.log_uniform(1, 1023);
        least = std::min(least, value);
        largest = std::max(largest, value);
        std::size_t octave = 0;
        while (std::int64_t{2} << octave <= value) {
            ++octave;
        }
        ++octaves.at(octave);
    }
    CHECK(least == 1);
    CHECK(largest >= 1020);
    for (const int count : octaves) {
        CHECK(count >= 850);  // 1000 expected, standard deviation 30
        CHECK(count <= 1150);
    }
    CHECK(RandomNumbers(3, 0).next() != RandomNumbers(3, 1).next());
    CHECK(RandomNumbers(3, 7).next() == RandomNumbers(3, 7).next());
    CHECK(random.log_uniform(5, 5) == 5);
}

}  // namespace
}  // namespace tessera::bench
