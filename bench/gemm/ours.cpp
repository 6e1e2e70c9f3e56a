#include "gemm/ours.hpp"

#include <fmt/format.h>

#include <utility>

#include "problem/with_element.hpp"
#include "report/gemm_summary.hpp"
#include "tessera/gemm.hpp"

namespace tessera::bench {
namespace {

// Plans, not Gemm::launch: a plan keeps its choice even if another contender tunes the same problem.
template <class OrderA, class OrderB, class Input, class Output>
Enqueue launch_of(const Task& task, const GemmPlan& plan)
{
    struct Views {
        MatrixView<const Input, OrderA> a;
        MatrixView<const Input, OrderB> b;
        MatrixView<Output> d;
        Epilogue epilogue;
    };
    const Problem& problem = task.problem;
    const auto [m, n, k] = problem.shape;
    std::vector<Views> views;
    for (const Operands& set : task.sets) {
        views.push_back({MatrixView<const Input, OrderA>::from_raw_device_pointer(static_cast<const Input*>(set.a), m,
                                                                                  k, problem.a_leading_dimension()),
                         MatrixView<const Input, OrderB>::from_raw_device_pointer(static_cast<const Input*>(set.b), k,
                                                                                  n, problem.b_leading_dimension()),
                         MatrixView<Output>::from_raw_device_pointer(static_cast<Output*>(set.d), m,
                                                                     problem.d_columns(), problem.d_columns()),
                         epilogue_of(task, set)});
    }
    return [views = std::move(views), plan](StreamRef stream, std::size_t set) {
        const Views& operands = views[set];
        plan.launch(stream, operands.a, operands.b, operands.d, operands.epilogue);
    };
}

Enqueue launch_of(const Task& task, const GemmPlan& plan)
{
    const Problem& problem = task.problem;
    return with_element(problem.input, [&]<class Input>(std::type_identity<Input>) {
        return with_output_element(problem.output, [&]<class Output>(std::type_identity<Output>) {
            if (problem.orders.a_row_major) {
                return problem.orders.b_row_major ? launch_of<RowMajor, RowMajor, Input, Output>(task, plan)
                                                  : launch_of<RowMajor, ColumnMajor, Input, Output>(task, plan);
            }
            return problem.orders.b_row_major ? launch_of<ColumnMajor, RowMajor, Input, Output>(task, plan)
                                              : launch_of<ColumnMajor, ColumnMajor, Input, Output>(task, plan);
        });
    });
}

/// Returns the line of the plan's explanation that names the kernel and its configuration.
std::string what_runs(const GemmPlan& plan)
{
    constexpr std::string_view label = "runs: ";
    const std::string text = plan.explain();
    const std::size_t begin = text.find(label);
    return begin == std::string::npos
               ? std::string()
               : text.substr(begin + label.size(), text.find('\n', begin) - begin - label.size());
}

Prepared prepare(const Task& task, Variant variant)
{
    const GemmProblem problem = gemm_problem_of(task);
    if (std::string refusal = GemmPlan::refusal(problem, task.device.properties(), variant); !refusal.empty()) {
        return {{}, std::move(refusal)};
    }
    return prepare_plan(task, GemmPlan::prepare(task.device, problem, variant));
}

GemmContender contender(Variant variant)
{
    return {fmt::format("{}{}", our_prefix, to_string(variant)),
            [variant](const Task& task) { return prepare(task, variant); }};
}

}  // namespace

GemmProblem gemm_problem_of(const Task& task) { return task.problem.gemm_problem(); }

Epilogue epilogue_of(const Task& task, const Operands& set)
{
    const GemmProblem problem = gemm_problem_of(task);
    Epilogue epilogue{.activation = problem.activation,
                      .fp8_accumulation = problem.fp8_accumulation,
                      .f16_accumulation = problem.f16_accumulation,
                      .gating = problem.gating};
    if (has_c(task.problem.fusion)) {
        with_output_element(task.problem.output, [&]<class Output>(std::type_identity<Output>) {
            epilogue.c = MatrixView<const Output>::from_raw_device_pointer(static_cast<const Output*>(set.c), problem.m,
                                                                           problem.n, problem.n);
        });
    }
    if (has_scales(task.problem.fusion)) {
        epilogue.scale_a = DeviceSpan<const float>::from_raw_device_pointer(task.scales.a, 1);
        epilogue.scale_b = DeviceSpan<const float>::from_raw_device_pointer(task.scales.b, 1);
    }
    if (has_bias(task.problem.fusion)) {
        epilogue.bias = Bias::per_column(
            DeviceSpan<const float>::from_raw_device_pointer(task.bias.f32, static_cast<std::size_t>(problem.n)));
    }
    return epilogue;
}

Prepared prepare_plan(const Task& task, const GemmPlan& plan)
{
    return {launch_of(task, plan), what_runs(plan),
            to_string(plan.variant()).starts_with("simt_") ? Accumulation::fp32
            : is_float8(plan.problem().input)              ? Accumulation::hopper_fp8
            : task.problem.input == ElementType::f16 && task.problem.sums == F16Accumulation::in_f16
                ? Accumulation::f16_sums
                : Accumulation::tensor_core};
}

std::vector<GemmContender> our_contenders(const std::vector<std::string>& variants)
{
    std::vector<GemmContender> contenders;
    for (const std::string& name : variants) {
        if (name != "none") {
            contenders.push_back(contender(variant_from_string(name)));
        }
    }
    return contenders;
}

}  // namespace tessera::bench
