#include "gemm/hopper_configs.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

#include "gemm/ours.hpp"
#include "report/gemm_summary.hpp"
#include "sdk/src/gemm/gemm_operands.hpp"
#include "sdk/src/gemm/hopper/hopper_chooser.hpp"
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

Prepared prepare(const Task& task, const std::string& text, double shortlist, CandidateFile* file)
{
    const DeviceProperties& device = task.device.properties();
    const GemmProblem problem = detail::resolved(task.problem.gemm_problem());
    if (const auto refusal = detail::find_hopper_refusal(problem, device)) {
        return {{}, detail::to_string(*refusal, device)};
    }
    std::vector<detail::KernelChoice> choices = detail::hopper_candidates(problem, device);
    std::erase_if(choices, [&](const detail::KernelChoice& choice) {
        return detail::describe_hopper(problem, choice).find(text) == std::string::npos;
    });
    if (choices.empty()) {
        return {{}, fmt::format("no configuration for this problem has '{}' in its description", text)};
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
    const auto fastest = static_cast<std::size_t>(std::min_element(seconds.begin(), seconds.end()) - seconds.begin());
    return {std::move(products[fastest]),
            fmt::format("{} (fastest of {})", detail::describe_hopper(problem, choices[fastest]), choices.size()),
            is_float8(task.problem.input) ? Accumulation::hopper_fp8 : Accumulation::tensor_core};
}

}  // namespace

GemmContender hopper_config_contender(std::string text, double shortlist, std::shared_ptr<CandidateFile> file)
{
    return {fmt::format("{}config", our_prefix),
            [text = std::move(text), shortlist, file = std::move(file)](const Task& task) {
                return prepare(task, text, shortlist, file.get());
            }};
}

}  // namespace tessera::bench
