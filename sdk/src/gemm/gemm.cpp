#include "tessera/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/call_status.hpp"
#include "base/profiler_range.hpp"
#include "gemm/blackwell/blackwell_launch.hpp"
#include "gemm/gemm_batches.hpp"
#include "gemm/gemm_operands.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/plan_differences.hpp"
#include "gemm/variant_chooser.hpp"
#include "gemm/workspace.hpp"

namespace tessera {
namespace {

constexpr std::string_view launch_operation = "Gemm::launch";
constexpr std::string_view plan_launch_operation = "GemmPlan::launch";

detail::CallStatus launch_simt(StreamRef stream, const GemmProblem& problem, Variant variant,
                               kernels::GemmArguments arguments, const DeviceProperties& device)
{
    const kernels::SimtKernel kernel = detail::simt_kernel_of(variant, problem, device);
    const auto tiles = [](std::int64_t extent, int block) { return (extent + block - 1) / block; };
    arguments.tiles_m = static_cast<std::uint32_t>(tiles(arguments.m, kernel.block_m));
    arguments.tiles_n = static_cast<std::uint32_t>(tiles(arguments.n, kernel.block_n));

    // Does not overflow: a grid that is too large makes a variant ineligible.
    const auto ctas = arguments.tiles_m * arguments.tiles_n * static_cast<std::uint32_t>(problem.batches);
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(ctas);
    config.blockDim = dim3(static_cast<unsigned>(kernel.threads));
    config.dynamicSmemBytes = kernel.shared_bytes;
    config.stream = stream.get();
    void* parameters[] = {&arguments};
    return {cudaLaunchKernelExC(&config, kernel.function, parameters), "cudaLaunchKernelExC"};
}

bool is_empty(const GemmProblem& problem) noexcept
{
    return problem.m == 0 || problem.n == 0 || problem.batches == 0 || problem.outer_batches == 0;
}

/// Makes all checks of a workspace, before anything is enqueued.
void require_workspace_for(StreamRef stream, const Workspace& workspace, const GemmProblem& one,
                           const detail::KernelChoice& choice, const detail::GemmOperands& operands,
                           const Epilogue& epilogue, std::string_view operation, const std::source_location& caller)
{
    if (workspace.limit() == detail::unlimited_workspace) {
        return;
    }
    const detail::HopperWorkspaceNeed need = detail::workspace_need(one, choice);
    detail::require_workspace(stream, workspace, need, operation, caller);
    detail::require_workspace_apart(workspace, detail::workspace_bytes(need), operands, epilogue, operation, caller);
}

/// Enqueues one kernel, or one per launch that the levels of a batch need. `one` is the problem of each launch.
void enqueue_levels(StreamRef stream, const detail::GemmOperands& operands, const Epilogue& epilogue,
                    const GemmProblem& one, const detail::BatchLevels& levels, const DeviceProperties& device,
                    const detail::KernelChoice& choice, const Workspace& workspace, std::string_view operation,
                    const std::source_location& caller)
{
    Epilogue own = epilogue;
    for (std::int64_t i = 0; i < levels.launches; ++i) {
        const detail::GemmOperands part{detail::one_launch(operands.a, levels, i),
                                        detail::one_launch(operands.b, levels, i),
                                        detail::one_launch(operands.d, levels, i)};
        own.c = detail::one_launch(epilogue.c, levels, i);
        own.pre_activation = detail::one_launch(epilogue.pre_activation, levels, i);
        detail::enqueue_gemm(stream, part, own, one, device, choice, operation, caller, workspace);
    }
}

}  // namespace

namespace detail {

void enqueue_gemm(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue, const GemmProblem& problem,
                  const DeviceProperties& device, const KernelChoice& choice, std::string_view operation,
                  const std::source_location& caller, const Workspace& given)
{
    const kernels::GemmArguments arguments = detail::arguments_of(operands, epilogue);
    const detail::ProfilerRange range(problem, choice.variant);
    const detail::CurrentDevice current(stream.device(), operation, caller);
    CallStatus ended;
    if (choice.variant == Variant::hopper) {
        const detail::WorkspaceLease workspace =
            detail::lease_workspace(stream, detail::hopper_workspace(problem, choice), given, operation, caller);
        ended = detail::launch_hopper(stream, problem, choice, arguments, workspace.memory());
    } else if (is_blackwell(choice.variant)) {
        ended = launch_blackwell(stream, problem, choice.variant, arguments, device);
    } else {
        ended = launch_simt(stream, problem, choice.variant, arguments, device);
    }
    if (ended.status != cudaSuccess) [[unlikely]] {
        detail::raise_cuda(ended.status, ended.call, operation, caller,
                           fmt::format("while launching {} for {}", to_string(choice.variant), problem.describe()));
    }
}

void launch_gemm(StreamRef stream, const GemmOperands& given, const Epilogue& given_epilogue, Variant variant,
                 const Workspace& workspace, const std::source_location& caller)
{
    require_operands(stream, given, given_epilogue, launch_operation, caller);
    GemmOperands operands = given;
    Epilogue epilogue = given_epilogue;
    share_single_matrices(operands, epilogue);
    const GemmProblem problem = problem_of(operands, epilogue);
    const BatchLevels levels = levels_of(problem);
    const GemmProblem one = one_launch(problem, levels);
    const Device owner(stream.device(), caller);
    const DeviceProperties& device = owner.properties();
    const KernelChoice chosen = choose_kernel(one, device, variant, launch_operation, caller, workspace.limit());
    if (!is_empty(problem)) {
        require_workspace_for(stream, workspace, one, chosen, operands, epilogue, launch_operation, caller);
        enqueue_levels(stream, operands, epilogue, one, levels, device, chosen, workspace, launch_operation, caller);
    }
}

}  // namespace detail

GemmPlan GemmPlan::prepare(const Device& device, const GemmProblem& problem, Variant variant,
                           std::source_location caller)
{
    return prepare(device, problem, variant, detail::unlimited_workspace, caller);
}

GemmPlan GemmPlan::prepare(const Device& device, const GemmProblem& problem, Variant variant,
                           std::size_t workspace_limit, std::source_location caller)
{
    constexpr std::string_view operation = "GemmPlan::prepare";
    detail::require_valid(problem, operation, caller);
    const GemmProblem planned = detail::resolved(problem);
    const detail::KernelChoice chosen = detail::choose_kernel(detail::one_launch(planned), device.properties(), variant,
                                                              operation, caller, workspace_limit);
    return {planned, device.properties(), device.ordinal(), variant, workspace_limit, chosen};
}

void GemmPlan::launch_checked(StreamRef stream, const detail::GemmOperands& given, const Epilogue& given_epilogue,
                              const Workspace& workspace, const std::source_location& caller) const
{
    detail::require_same_device(plan_launch_operation, caller, "the plan", device_, "the stream", stream.device());
    detail::require_operands(stream, given, given_epilogue, plan_launch_operation, caller);
    detail::GemmOperands operands = given;
    Epilogue epilogue = given_epilogue;
    detail::share_single_matrices(operands, epilogue);
    GemmProblem problem = detail::problem_of(operands, epilogue);
    if (!detail::serves(problem_, choice_, problem, *properties_)) {
        detail::raise(ErrorCode::shape_mismatch, plan_launch_operation, caller,
                      detail::differences(problem_, choice_, problem),
                      "prepare a plan for these operands, or call Gemm::launch");
    }
    if (choice_.variant == Variant::hopper) {  // its configuration depends on how each operand is loaded
        problem.a.address_alignment = std::min(problem.a.address_alignment, problem_.a.address_alignment);
        problem.b.address_alignment = std::min(problem.b.address_alignment, problem_.b.address_alignment);
    }
    if (!is_empty(problem)) {
        const detail::BatchLevels levels = detail::levels_of(problem_);
        const GemmProblem one = detail::one_launch(problem, levels);
        require_workspace_for(stream, workspace, one, choice_, operands, epilogue, plan_launch_operation, caller);
        enqueue_levels(stream, operands, epilogue, one, levels, *properties_, choice_, workspace, plan_launch_operation,
                       caller);
    }
}

std::size_t GemmPlan::workspace_bytes() const noexcept
{
    return detail::workspace_bytes(detail::workspace_need(detail::one_launch(problem_), choice_));
}

void GemmPlan::set_workspace_resource(const Device& device, MemoryResourceRef resource, std::source_location caller)
{
    detail::set_workspace_resource(device.ordinal(), resource, "GemmPlan::set_workspace_resource", caller);
}

void GemmPlan::release_workspaces() noexcept { detail::release_all_workspaces(); }

std::size_t GemmPlan::required_alignment(Variant variant, InputTypes input) noexcept
{
    return detail::required_alignment(variant, input);
}

std::string GemmPlan::refusal(const GemmProblem& problem, const DeviceProperties& device, Variant variant)
{
    if (variant == Variant::automatic) {
        for (const Variant candidate : all_variants()) {
            if (refusal(problem, device, candidate).empty()) {
                return {};
            }
        }
        return refusal(problem, device, Variant::simt_register_blocked);
    }
    const auto found = detail::find_refusal(variant, detail::one_launch(detail::resolved(problem)), device);
    return found ? detail::to_string(*found, device) : std::string();
}

std::string GemmPlan::explain() const
{
    std::string text = detail::explain_choice(problem_, *properties_, wanted_, choice_);
    if (workspace_limit_ != detail::unlimited_workspace) {
        text += fmt::format("  chosen among kernels that need a workspace of at most {} bytes\n", workspace_limit_);
    }
    return text;
}

std::string GemmPlan::explain(const GemmProblem& problem, const DeviceProperties& device, Variant variant)
{
    return detail::explain_choice(problem, device, variant);
}

}  // namespace tessera
