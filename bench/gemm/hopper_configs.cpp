#include "gemm/hopper_configs.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gemm/ours.hpp"
#include "report/gemm_summary.hpp"
#include "sdk/src/gemm/gemm_operands.hpp"
#include "sdk/src/gemm/hopper/hopper_chooser.hpp"
#include "sdk/src/gemm/hopper/hopper_cycles.hpp"
#include "sdk/src/gemm/hopper/hopper_launch.hpp"
#include "tessera/device_buffer.hpp"

namespace tessera::bench {
namespace {

/// Shared by the launches of all candidates, which follow each other on one stream.
struct Shared {
    GemmProblem problem;
    std::vector<kernels::GemmArguments> arguments;  // one per set
    DeviceBuffer<std::byte> partials;
    DeviceBuffer<std::uint32_t> counters;  // zero before and after each launch
    DeviceBuffer<std::byte> copies;

    detail::WorkspaceMemory workspace()
    {
        return {reinterpret_cast<float*>(partials.data()), counters.data(), copies.data()};
    }
};

MatrixOperand operand(const void* data, ElementType type, std::int64_t rows, std::int64_t columns,
                      const MatrixLayout& layout, int device)
{
    MatrixOperand operand;
    operand.data = data;
    operand.type = type;
    operand.rows = rows;
    operand.columns = columns;
    operand.leading_dimension = layout.leading_dimension;
    operand.row_major = layout.row_major;
    operand.present = true;
    operand.device = device;
    return operand;
}

std::vector<kernels::GemmArguments> arguments_of(const Task& task, const GemmProblem& problem)
{
    const int device = task.device.ordinal();
    std::vector<kernels::GemmArguments> arguments;
    for (const Operands& set : task.sets) {
        arguments.push_back(
            detail::arguments_of({operand(set.a, task.problem.input, problem.m, problem.k, problem.a, device),
                                  operand(set.b, task.problem.input, problem.k, problem.n, problem.b, device),
                                  operand(set.d, task.problem.output, problem.m, problem.n, problem.d, device)},
                                 epilogue_of(task, set)));
    }
    return arguments;
}

/// Keeps the choices that the cost model expects within `factor` of the best; of those that differ in the raster alone, the
/// first.
void shorten(std::vector<detail::KernelChoice>& choices, const GemmProblem& problem, const DeviceProperties& device,
             double factor)
{
    const auto cycles = [&](const detail::KernelChoice& choice) {
        return detail::expected_hopper_cycles(problem, device, choice);
    };
    double least = std::numeric_limits<double>::infinity();
    for (const detail::KernelChoice& choice : choices) {
        least = std::min(least, cycles(choice));
    }
    std::vector<detail::KernelChoice> kept;
    for (const detail::KernelChoice& choice : choices) {
        const bool is_listed = std::any_of(kept.begin(), kept.end(), [&](detail::KernelChoice other) {
            other.band = choice.band;
            return other == choice;
        });
        if (!is_listed && cycles(choice) <= factor * least) {
            kept.push_back(choice);
        }
    }
    choices = std::move(kept);
}

/// The places of the `count` fastest, in order; the last of them gives way to the cost model's choice if it is not one of
/// them. Candidates that could not run are none.
std::vector<std::size_t> finalists(const std::vector<detail::KernelChoice>& choices, const std::vector<double>& seconds,
                                   const GemmProblem& problem, const DeviceProperties& device, std::size_t count)
{
    std::vector<std::size_t> places(choices.size());
    std::iota(places.begin(), places.end(), std::size_t{0});
    std::erase_if(places, [&](std::size_t place) { return !std::isfinite(seconds[place]); });
    if (places.empty()) {
        return places;
    }
    const auto cycles = [&](std::size_t place) {
        return detail::expected_hopper_cycles(problem, device, choices[place]);
    };
    const std::size_t model_choice = *std::ranges::min_element(places, {}, cycles);
    std::ranges::sort(places, {}, [&](std::size_t place) { return std::pair{seconds[place], place}; });
    places.resize(std::min(count, places.size()));
    if (places.size() > 1 && std::ranges::find(places, model_choice) == places.end()) {
        places.back() = model_choice;
    }
    return places;
}

/// Returns the finalists, or one that says why there are none.
std::vector<Prepared> prepare(const Task& task, const std::string& text, double shortlist, std::size_t count,
                              CandidateFile* file)
{
    const DeviceProperties& device = task.device.properties();
    const GemmProblem problem = detail::resolved(task.problem.gemm_problem());
    if (const auto refusal = detail::find_hopper_refusal(problem, device)) {
        return {{{}, detail::to_string(*refusal, device)}};
    }
    std::vector<detail::KernelChoice> choices = detail::hopper_candidates(problem, device);
    std::erase_if(choices, [&](const detail::KernelChoice& choice) {
        return detail::describe_hopper(problem, choice).find(text) == std::string::npos;
    });
    if (choices.empty()) {
        return {{{}, fmt::format("no configuration for this problem has '{}' in its description", text)}};
    }

    if (shortlist > 0) {
        shorten(choices, problem, device, shortlist);
    }

    detail::WorkspaceNeed need;
    for (const detail::KernelChoice& choice : choices) {
        const detail::WorkspaceNeed one = detail::hopper_workspace(problem, choice);
        need.partial_bytes = std::max(need.partial_bytes, one.partial_bytes);
        need.counters = std::max(need.counters, one.counters);
        need.copy_bytes = std::max(need.copy_bytes, one.copy_bytes);
    }
    const auto shared = std::make_shared<Shared>(Shared{problem, arguments_of(task, problem),
                                                        DeviceBuffer<std::byte>(task.stream, need.partial_bytes),
                                                        DeviceBuffer<std::uint32_t>(task.stream, need.counters),
                                                        DeviceBuffer<std::byte>(task.stream, need.copy_bytes)});
    shared->counters.fill(task.stream, 0U);
    std::vector<Enqueue> products;
    for (const detail::KernelChoice& choice : choices) {
        products.emplace_back([shared, choice](StreamRef stream, std::size_t set) {
            const detail::CallStatus ended =
                detail::launch_hopper(stream, shared->problem, choice, shared->arguments[set], shared->workspace());
            if (ended.status != cudaSuccess) {
                throw std::runtime_error(fmt::format("launching {} failed: {} returned {}",
                                                     detail::describe_hopper(shared->problem, choice), ended.call,
                                                     cudaGetErrorString(ended.status)));
            }
        });
    }
    const std::vector<double> seconds = task.race(products);
    if (file != nullptr) {
        file->write(task.problem, problem, device, choices, seconds);
    }
    std::vector<Prepared> prepared;
    for (const std::size_t place : finalists(choices, seconds, problem, device, count)) {
        prepared.push_back({std::move(products[place]),
                            fmt::format("{} (number {} of {})", detail::describe_hopper(problem, choices[place]),
                                        1 + std::count_if(seconds.begin(), seconds.end(),
                                                          [&](double other) { return other < seconds[place]; }),
                                        choices.size()),
                            is_float8(task.problem.input) ? Accumulation::hopper_fp8 : Accumulation::tensor_core});
    }
    if (prepared.empty()) {
        prepared.push_back({{}, "no configuration could run"});
    }
    return prepared;
}

}  // namespace

std::vector<GemmContender> hopper_config_contenders(const std::string& text, double shortlist, std::size_t finalists,
                                                    const std::shared_ptr<CandidateFile>& file)
{
    // The first contender races all candidates of a problem, the others take the next ones.
    const auto ranking = std::make_shared<std::vector<Prepared>>();
    std::vector<GemmContender> contenders;
    for (std::size_t place = 0; place < finalists; ++place) {
        contenders.push_back(
            {place == 0 ? fmt::format("{}config", our_prefix) : fmt::format("{}config_{}", our_prefix, place + 1),
             [=](const Task& task) -> Prepared {
                 if (place == 0) {
                     *ranking = prepare(task, text, shortlist, finalists, file.get());
                 }
                 return place < ranking->size() ? std::move((*ranking)[place]) : Prepared{{}, "fewer configurations"};
             }});
    }
    return contenders;
}

}  // namespace tessera::bench
