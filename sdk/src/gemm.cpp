#include "tessera/gemm.hpp"

#include <fmt/format.h>

#include "blackwell_launch.hpp"
#include "gemm_operands.hpp"
#include "hopper_launch.hpp"
#include "profiler_range.hpp"
#include "variant_chooser.hpp"
#include "workspace.hpp"

namespace tessera {
namespace {

constexpr std::string_view launch_operation = "Gemm::launch";
constexpr std::string_view plan_launch_operation = "GemmPlan::launch";

cudaError_t launch_simt(StreamRef stream, const GemmProblem& problem, Variant variant, kernels::GemmArguments arguments,
                        const DeviceProperties& device)
{
    const kernels::SimtKernel kernel = detail::simt_kernel_of(variant, problem, device);
    const auto tiles = [](std::int64_t extent, int block) { return (extent + block - 1) / block; };
    arguments.tiles_m = static_cast<std::uint32_t>(tiles(arguments.m, kernel.block_m));
    arguments.tiles_n = static_cast<std::uint32_t>(tiles(arguments.n, kernel.block_n));

    // Fits: a grid that is too large makes a variant ineligible.
    const auto ctas = arguments.tiles_m * arguments.tiles_n * static_cast<std::uint32_t>(problem.batches);
    cudaLaunchConfig_t config{};
    config.gridDim = dim3(ctas);
    config.blockDim = dim3(static_cast<unsigned>(kernel.threads));
    config.dynamicSmemBytes = kernel.shared_bytes;
    config.stream = stream.get();
    void* parameters[] = {&arguments};
    return cudaLaunchKernelExC(&config, kernel.function, parameters);
}

bool is_empty(const GemmProblem& problem) noexcept { return problem.m == 0 || problem.n == 0 || problem.batches == 0; }

/// What a plan depends on. Alignment may be better than planned, never worse.
bool serves(const MatrixLayout& planned, const MatrixLayout& given, bool batched) noexcept
{
    return planned.row_major == given.row_major && planned.leading_dimension == given.leading_dimension &&
           (!batched || planned.batch_stride == given.batch_stride) &&
           planned.address_alignment <= given.address_alignment;
}

bool serves(const GemmProblem& planned, const GemmProblem& given) noexcept
{
    const bool batched = planned.batches > 1;
    return planned.m == given.m && planned.n == given.n && planned.k == given.k && planned.batches == given.batches &&
           planned.input == given.input && planned.output == given.output && serves(planned.a, given.a, batched) &&
           serves(planned.b, given.b, batched) && serves(planned.d, given.d, batched) && planned.has_c == given.has_c &&
           planned.bias == given.bias && planned.activation == given.activation &&
           (!is_float8(planned.input) || planned.fp8_accumulation == given.fp8_accumulation);
}

std::string describe_layouts(const GemmProblem& problem)
{
    const auto one = [&](char name, const MatrixLayout& layout) {
        return fmt::format("{}: leading dimension {}, batch stride {}, address a multiple of {} bytes", name,
                           layout.leading_dimension, layout.batch_stride, layout.address_alignment);
    };
    return fmt::format("{} ({}; {}; {})", problem.describe(), one('A', problem.a), one('B', problem.b),
                       one('D', problem.d));
}

}  // namespace

namespace detail {

void enqueue_gemm(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue, const GemmProblem& problem,
                  const DeviceProperties& device, const KernelChoice& choice, std::string_view operation,
                  const std::source_location& caller)
{
    const kernels::GemmArguments arguments = detail::arguments_of(operands, epilogue);
    const detail::ProfilerRange range(problem, choice.variant);
    const detail::CurrentDevice current(stream.device(), operation, caller);
    cudaError_t status = cudaSuccess;
    if (choice.variant == Variant::hopper) {
        const detail::WorkspaceLease workspace =
            detail::lease_workspace(stream, detail::hopper_workspace(problem, choice), operation, caller);
        status = detail::launch_hopper(stream, problem, choice, arguments, workspace.memory());
    } else if (is_blackwell(choice.variant)) {
        status = launch_blackwell(stream, problem, choice.variant, arguments, device);
    } else {
        status = launch_simt(stream, problem, choice.variant, arguments, device);
    }
    if (status != cudaSuccess) [[unlikely]] {
        detail::raise_cuda(status, "cudaLaunchKernelExC", operation, caller,
                           fmt::format("while launching {} for {}", to_string(choice.variant), problem.describe()));
    }
}

void launch_gemm(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue, Variant variant,
                 const std::source_location& caller)
{
    require_operands(stream, operands, epilogue, launch_operation, caller);
    const GemmProblem problem = problem_of(operands, epilogue);
    const Device owner(stream.device(), caller);
    const DeviceProperties& device = owner.properties();
    const KernelChoice chosen = choose_kernel(problem, device, variant, launch_operation, caller);
    if (!is_empty(problem)) {
        enqueue_gemm(stream, operands, epilogue, problem, device, chosen, launch_operation, caller);
    }
}

}  // namespace detail

GemmPlan GemmPlan::prepare(const Device& device, const GemmProblem& problem, Variant variant,
                           std::source_location caller)
{
    constexpr std::string_view operation = "GemmPlan::prepare";
    detail::require_valid(problem, operation, caller);
    const GemmProblem planned = detail::resolved(problem);
    const detail::KernelChoice chosen = detail::choose_kernel(planned, device.properties(), variant, operation, caller);
    return {planned, device.properties(), device.ordinal(), variant, chosen};
}

void GemmPlan::launch_checked(StreamRef stream, const detail::GemmOperands& operands, const Epilogue& epilogue,
                              const std::source_location& caller) const
{
    detail::require_same_device(plan_launch_operation, caller, "the plan", device_, "the stream", stream.device());
    detail::require_operands(stream, operands, epilogue, plan_launch_operation, caller);
    const GemmProblem problem = detail::problem_of(operands, epilogue);
    if (!serves(problem_, problem)) {
        detail::raise(ErrorCode::shape_mismatch, plan_launch_operation, caller,
                      fmt::format("the plan is for {}\nand the operands are {}", describe_layouts(problem_),
                                  describe_layouts(problem)),
                      "prepare a plan for these operands, or call Gemm::launch");
    }
    if (!is_empty(problem)) {
        detail::enqueue_gemm(stream, operands, epilogue, problem, *properties_, choice_, plan_launch_operation, caller);
    }
}

std::size_t GemmPlan::workspace_bytes() const noexcept
{
    if (choice_.variant != Variant::hopper) {
        return 0;
    }
    const detail::HopperWorkspaceNeed need = detail::hopper_workspace(problem_, choice_);
    return need.partial_bytes + need.counters * sizeof(std::uint32_t) + need.copy_bytes;
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
    const auto found = detail::find_refusal(variant, detail::resolved(problem), device);
    return found ? detail::to_string(*found, device) : std::string();
}

std::string GemmPlan::explain() const { return detail::explain_choice(problem_, *properties_, wanted_, choice_); }

std::string GemmPlan::explain(const GemmProblem& problem, const DeviceProperties& device, Variant variant)
{
    return detail::explain_choice(problem, device, variant);
}

}  // namespace tessera
