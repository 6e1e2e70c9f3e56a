#include "problem_options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <stdexcept>

#include "problem/fusion.hpp"

namespace tessera::bench {

void add_problem_options(CLI::App& command, ProblemOptions& options)
{
    command.add_option(
        "presets", options.presets,
        fmt::format("lists of problems: {}; default without --shapes: hopper", fmt::join(preset_names(), ", ")));
    command.add_option("--shapes", options.shapes, "MxNxK, or N for a cube; separated by commas")->delimiter(',');
    command
        .add_option("--types", options.types,
                    "types for --shapes and models: input:output, or one for both; bf16, f16:f32, ...")
        ->delimiter(',')
        ->capture_default_str();
    command
        .add_option("--orders", options.orders,
                    "orders of A and B for --shapes and models: rr, rc, cr, cc (r: row-major)")
        ->delimiter(',')
        ->capture_default_str();
    command
        .add_option("--padding", options.paddings,
                    "for --shapes: elements by which A's and B's leading dimensions exceed the extents")
        ->delimiter(',')
        ->check(CLI::Range(std::int64_t{0}, max_extent))
        ->capture_default_str();
    command
        .add_option("--epilogue", options.epilogues,
                    fmt::format("epilogues, fused by both sides: {}", fmt::join(fusion_names(), ", ")))
        ->delimiter(',')
        ->capture_default_str();
    command
        .add_option("--accumulation", options.accumulations,
                    "how 8-bit products are added, by both sides: fast, two-level (the default of both libraries)")
        ->delimiter(',')
        ->capture_default_str();
    command
        .add_option("--sums", options.sums,
                    "in what our mma_sync may add f16 products: f32, f16; peers add them in f32")
        ->delimiter(',')
        ->capture_default_str();
    command
        .add_option("--tokens", options.tokens,
                    "models: M of every layer; default: one of 1 to 16384 per layer, in turn")
        ->delimiter(',')
        ->check(CLI::Range(std::int64_t{1}, max_extent));
    command.add_option("--count", options.count, "random: number of problems")
        ->check(CLI::Range(std::size_t{1}, std::size_t{100000}))
        ->capture_default_str();
    command.add_option("--split", options.split, "only these problems: fit (three in four) or held-out (the others)");
}

std::vector<Problem> problems_of(const ProblemOptions& options, std::uint64_t seed)
{
    std::vector<Problem> plain;
    for (const std::string& type : options.types) {
        for (const std::string& orders : options.orders) {
            for (const std::string& shape : options.shapes) {
                const Types types = parse_types(type);
                for (const std::int64_t padding : options.paddings) {
                    plain.push_back({parse_shape(shape), types.input, parse_orders(orders), types.output, padding});
                }
            }
        }
    }
    std::vector<std::string> presets = options.presets;
    if (presets.empty() && options.shapes.empty()) {
        presets.emplace_back("hopper");
    }
    PresetOptions wanted{{}, {}, options.tokens, seed, options.count};
    std::transform(options.types.begin(), options.types.end(), std::back_inserter(wanted.types), parse_types);
    std::transform(options.orders.begin(), options.orders.end(), std::back_inserter(wanted.orders), parse_orders);
    for (const std::string& name : presets) {
        const std::vector<Problem> problems = preset(name, wanted);
        plain.insert(plain.end(), problems.begin(), problems.end());
    }
    if (options.split) {
        const Split split = parse_split(*options.split);
        std::erase_if(plain, [&](const Problem& problem) { return split_of(problem) != split; });
        if (plain.empty()) {
            throw std::invalid_argument(
                fmt::format("--split {}: none of the problems is in this half", *options.split));
        }
    }
    std::vector<Problem> problems;
    for (const Problem& problem : plain) {
        for (const std::string& epilogue : options.epilogues) {
            const Fusion fusion = parse_fusion(epilogue);
            if (has_scales(fusion) && !is_float8(problem.input)) {
                throw std::invalid_argument(
                    fmt::format("--epilogue {} is for 8-bit inputs, and A and B are {}: choose "
                                "--types f8e4m3 or another epilogue",
                                epilogue, tessera::to_string(problem.input)));
            }
            if (is_gated(fusion) && problem.shape.n % 2 != 0) {
                throw std::invalid_argument(fmt::format(
                    "--epilogue {} needs two halves of N, which is {}: choose an even N", epilogue, problem.shape.n));
            }
            // Inputs of 8 bits and of f16 have two ways to accumulate each, others have one.
            Problem fused = problem;
            fused.fusion = fusion;
            for (const std::string& accumulation : options.accumulations) {
                fused.accumulation = parse_accumulation(accumulation);
                for (const std::string& sums : options.sums) {
                    fused.sums = parse_sums(sums);
                    if ((is_float8(problem.input) || &accumulation == &options.accumulations.front()) &&
                        (problem.input == ElementType::f16 || &sums == &options.sums.front())) {
                        problems.push_back(fused);
                    }
                }
            }
        }
    }
    return problems;
}

}  // namespace tessera::bench
