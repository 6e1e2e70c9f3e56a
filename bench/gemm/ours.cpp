#include "gemm/ours.hpp"

#include <fmt/format.h>

#include <utility>

#include "problem/with_element.hpp"
#include "report/gemm_summary.hpp"
#include "tessera/gemm.hpp"

namespace tessera::bench {
namespace {

template <class OrderA, class OrderB, class Input, class Output>
Enqueue launch_of(const Task& task, Variant variant)
{
    struct Views {
        MatrixView<const Input, OrderA> a;
        MatrixView<const Input, OrderB> b;
        MatrixView<Output> d;
    };
    const Problem& problem = task.problem;
    const auto [m, n, k] = problem.shape;
    std::vector<Views> views;
    for (const Operands& set : task.sets) {
        views.push_back({MatrixView<const Input, OrderA>::from_raw_device_pointer(static_cast<const Input*>(set.a), m,
                                                                                  k, problem.a_leading_dimension()),
                         MatrixView<const Input, OrderB>::from_raw_device_pointer(static_cast<const Input*>(set.b), k,
                                                                                  n, problem.b_leading_dimension()),
                         MatrixView<Output>::from_raw_device_pointer(static_cast<Output*>(set.d), m, n, n)});
    }
    return [views = std::move(views), variant](StreamRef stream, std::size_t set) {
        const Views& operands = views[set];
        Gemm::launch(stream, operands.a, operands.b, operands.d, {.fp8_accumulation = Fp8Accumulation::fast}, variant);
    };
}

Enqueue launch_of(const Task& task, Variant variant)
{
    const Problem& problem = task.problem;
    return with_element(problem.input, [&]<class Input>(std::type_identity<Input>) {
        return with_output_element(problem.output, [&]<class Output>(std::type_identity<Output>) {
            if (problem.orders.a_row_major) {
                return problem.orders.b_row_major ? launch_of<RowMajor, RowMajor, Input, Output>(task, variant)
                                                  : launch_of<RowMajor, ColumnMajor, Input, Output>(task, variant);
            }
            return problem.orders.b_row_major ? launch_of<ColumnMajor, RowMajor, Input, Output>(task, variant)
                                              : launch_of<ColumnMajor, ColumnMajor, Input, Output>(task, variant);
        });
    });
}

Prepared prepare(const Task& task, Variant variant)
{
    GemmProblem problem = task.problem.gemm_problem();
    problem.fp8_accumulation = Fp8Accumulation::fast;  // as cuBLASLt is asked to
    if (std::string refusal = GemmPlan::refusal(problem, task.device.properties(), variant); !refusal.empty()) {
        return {{}, std::move(refusal)};
    }
    const std::string_view chosen = to_string(GemmPlan::prepare(task.device, problem, variant).variant());
    return {launch_of(task, variant), variant == Variant::automatic ? std::string(chosen) : std::string(),
            chosen.starts_with("simt_") ? Accumulation::fp32
            : is_float8(problem.input)  ? Accumulation::hopper_fp8
                                        : Accumulation::tensor_core};
}

GemmContender contender(Variant variant)
{
    return {fmt::format("{}{}", our_prefix, to_string(variant)),
            [variant](const Task& task) { return prepare(task, variant); }};
}

}  // namespace

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
