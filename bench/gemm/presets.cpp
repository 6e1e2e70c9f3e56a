#include "gemm/presets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <stdexcept>
#include <utility>

#include "gemm/model_layers.hpp"
#include "gemm/random_problems.hpp"
#include "problem/random.hpp"

namespace tessera::bench {
namespace {

// Square and large, ragged, wide, skinny (few rows: the weights are streamed), deep (one tile, long k) and flat (k of
// one pipeline stage): the cases that distinguish GEMM implementations.
constexpr std::array hopper_shapes{Shape{1024, 1024, 1024}, Shape{2048, 2048, 2048},    Shape{4096, 4096, 4096},
                                   Shape{8192, 8192, 8192}, Shape{16384, 16384, 16384}, Shape{4000, 4096, 4096},
                                   Shape{4096, 4096, 4000}, Shape{1536, 6144, 2048},    Shape{8192, 28672, 4096},
                                   Shape{64, 4096, 4096},   Shape{16, 14336, 4096},     Shape{128, 8192, 8192},
                                   Shape{256, 256, 65536},  Shape{1000, 1000, 1000},    Shape{4096, 4096, 64}};
constexpr std::array sweep_extents{256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096, 6144, 8192};
constexpr Shape cube_4096{4096, 4096, 4096};

Problem bf16_problem(const Shape& shape) { return {shape, ElementType::bf16, k_contiguous, ElementType::bf16}; }

std::vector<Problem> hopper(const PresetOptions&)
{
    std::vector<Problem> problems;
    for (const Shape& shape : hopper_shapes) {
        problems.push_back(bf16_problem(shape));
    }
    return problems;
}

std::vector<Problem> layouts(const PresetOptions&)
{
    std::vector<Problem> problems;
    for (const Orders& orders : {k_contiguous, Orders{true, true}, Orders{false, false}, Orders{false, true}}) {
        problems.push_back(bf16_problem(cube_4096));
        problems.back().orders = orders;
    }
    return problems;
}

/// The same product with and without a leading dimension that TMA cannot address.
std::vector<Problem> odd(const PresetOptions&)
{
    std::vector<Problem> problems{bf16_problem(cube_4096), bf16_problem(cube_4096)};
    problems.back().padding = 1;
    return problems;
}

std::vector<Problem> fp8(const PresetOptions&)
{
    std::vector<Problem> problems;
    for (const Shape& shape : {cube_4096, Shape{8192, 8192, 8192}}) {
        problems.push_back({shape, ElementType::f8e4m3, k_contiguous, ElementType::bf16});
    }
    return problems;
}

std::vector<Problem> sweep(const PresetOptions&)
{
    std::vector<Problem> problems;
    for (const std::int64_t extent : sweep_extents) {
        problems.push_back(bf16_problem({extent, extent, extent}));
    }
    return problems;
}

std::vector<Problem> models(const PresetOptions& options)
{
    std::vector<Problem> problems;
    for (const Types& types : options.types) {
        for (const Orders& orders : options.orders) {
            for (Problem& problem : model_problems(types, orders, options.tokens)) {
                problems.push_back(std::move(problem));
            }
        }
    }
    return problems;
}

std::vector<Problem> random(const PresetOptions& options) { return random_problems(options.seed, options.count); }

struct Preset {
    std::string_view name;
    std::vector<Problem> (*problems)(const PresetOptions& options);
};

constexpr std::array presets{Preset{"hopper", hopper}, Preset{"fp8", fp8},     Preset{"layouts", layouts},
                             Preset{"odd", odd},       Preset{"sweep", sweep}, Preset{"models", models},
                             Preset{"random", random}};

}  // namespace

std::vector<std::string_view> preset_names()
{
    std::vector<std::string_view> names;
    for (const Preset& known : presets) {
        names.push_back(known.name);
    }
    return names;
}

std::vector<Problem> preset(std::string_view name, const PresetOptions& options)
{
    for (const Preset& known : presets) {
        if (known.name == name) {
            return known.problems(options);
        }
    }
    throw std::invalid_argument(
        fmt::format("unknown preset '{}': there are {}", name, fmt::join(preset_names(), ", ")));
}

Split parse_split(std::string_view text)
{
    if (text == "fit" || text == "held-out") {
        return text == "fit" ? Split::fit : Split::held_out;
    }
    throw std::invalid_argument(fmt::format("'{}' is not a half of a list: write fit or held-out", text));
}

Split split_of(const Problem& problem)
{
    std::uint64_t hash = 0;
    const auto& [m, n, k] = problem.shape;
    for (const std::int64_t fact :
         {m, n, k, static_cast<std::int64_t>(problem.input), static_cast<std::int64_t>(problem.output),
          std::int64_t{problem.orders.a_row_major}, std::int64_t{problem.orders.b_row_major}, problem.padding}) {
        hash = RandomNumbers(hash, static_cast<std::uint64_t>(fact)).next();
    }
    constexpr std::uint64_t held_out_one_in = 4;
    return hash % held_out_one_in == 0 ? Split::held_out : Split::fit;
}

}  // namespace tessera::bench
