#include "tessera/gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "base/call_status.hpp"
#include "base/profiler_range.hpp"
#include "gemm/backend.hpp"
#include "gemm/encoded_launch.hpp"
#include "gemm/gemm_batches.hpp"
#include "gemm/gemm_operands.hpp"
#include "gemm/operand_overlap.hpp"
#include "gemm/plan_differences.hpp"
#include "gemm/seen_launches.hpp"
#include "gemm/variant_chooser.hpp"
#include "gemm/workspace.hpp"
#include "tuning/tuning_table.hpp"

namespace tessera {
namespace {

constexpr std::string_view launch_operation = "Gemm::launch";
constexpr std::string_view plan_launch_operation = "GemmPlan::launch";

bool is_empty(const GemmProblem& problem) noexcept
{
    return problem.m == 0 || problem.n == 0 || problem.batches == 0 || problem.outer_batches == 0;
}

/// Makes all checks of a workspace, before anything is enqueued.
void require_workspace_for(StreamRef stream, const Workspace& workspace, const detail::WorkspaceNeed& need,
                           const detail::GemmOperands& operands, const Epilogue& epilogue, std::string_view operation,
                           const std::source_location& caller)
{
    if (workspace.limit() == detail::unlimited_workspace) {
        return;
    }
    detail::require_workspace(stream, workspace, need, operation, caller);
    detail::require_workspace_apart(workspace, detail::workspace_bytes(need), operands, epilogue, operation, caller);
}

DeviceProperties limited(DeviceProperties device, int max_sms)
{
    device.sm_count = max_sms > 0 ? std::min(device.sm_count, max_sms) : device.sm_count;
    return device;
}

/// Returns the facts of a device, which live as long as the process, with at most `max_sms` SMs. So do these, as a plan needs them.
const DeviceProperties* kept_limited(const DeviceProperties* device, int max_sms)
{
    if (max_sms <= 0 || max_sms >= device->sm_count) {
        return device;
    }
    static auto* const mutex = new std::mutex;
    static auto* const kept = new std::map<std::pair<const DeviceProperties*, int>, DeviceProperties>;
    const std::scoped_lock lock(*mutex);
    return &kept->try_emplace({device, max_sms}, limited(*device, max_sms)).first->second;
}

void require_enqueued(const detail::CallStatus& ended, Variant variant, const GemmProblem& problem,
                      std::string_view operation, const std::source_location& caller)
{
    if (ended.status != cudaSuccess) [[unlikely]] {
        detail::raise_cuda(ended.status, ended.call, operation, caller,
                           fmt::format("while launching {} for {}", to_string(variant), problem.describe()));
    }
}

/// A launch: the workspace that it needs, and once it was enqueued what was, with which workspace.
struct Enqueued {
    explicit Enqueued(const detail::WorkspaceNeed& needed) : need(needed) {}

    detail::WorkspaceNeed need;
    detail::WorkspaceMemory memory{};
    detail::EncodedLaunch launch;
};

/// Encodes and enqueues one launch. Its device is current.
void encode_and_enqueue(StreamRef stream, const detail::GemmOperands& operands, const Epilogue& epilogue,
                        const GemmProblem& problem, const DeviceProperties& device, const detail::KernelChoice& choice,
                        std::string_view operation, const std::source_location& caller, Enqueued& made)
{
    detail::CallStatus ended =
        detail::backend_of(choice.variant)
            .encode(made.launch, {problem, device}, choice, detail::arguments_of(operands, epilogue), made.memory);
    if (ended.status == cudaSuccess) {
        ended = enqueue(made.launch, stream);
    }
    require_enqueued(ended, choice.variant, problem, operation, caller);
}

void enqueue_one(StreamRef stream, const detail::GemmOperands& operands, const Epilogue& epilogue,
                 const GemmProblem& problem, const DeviceProperties& device, const detail::KernelChoice& choice,
                 std::string_view operation, const std::source_location& caller, const Workspace& given, Enqueued& made)
{
    const detail::ProfilerRange range(problem, choice.variant);
    const detail::CurrentDevice current(stream.device(), operation, caller);
    const detail::WorkspaceLease workspace = detail::lease_workspace(stream, made.need, given, operation, caller);
    made.memory = workspace.memory();
    encode_and_enqueue(stream, operands, epilogue, problem, device, choice, operation, caller, made);
}

/// The operands of one of the launches that the levels of a batch need.
struct OneLaunch {
    detail::GemmOperands operands;
    Epilogue epilogue;
};

OneLaunch one_launch(const detail::GemmOperands& operands, const Epilogue& epilogue, const detail::BatchLevels& levels,
                     std::int64_t index)
{
    OneLaunch one{{detail::one_launch(operands.a, levels, index), detail::one_launch(operands.b, levels, index),
                   detail::one_launch(operands.d, levels, index)},
                  epilogue};
    one.epilogue.c = detail::one_launch(epilogue.c, levels, index);
    one.epilogue.pre_activation = detail::one_launch(epilogue.pre_activation, levels, index);
    return one;
}

/// Enqueues one kernel, or one per launch that the levels of a batch need; `made` is the last. `problem` is that of
/// each launch.
void enqueue_levels(StreamRef stream, const detail::GemmOperands& operands, const Epilogue& epilogue,
                    const GemmProblem& problem, const detail::BatchLevels& levels, const DeviceProperties& device,
                    const detail::KernelChoice& choice, const Workspace& workspace, std::string_view operation,
                    const std::source_location& caller, Enqueued& made)
{
    for (std::int64_t i = 0; i < levels.launches; ++i) {
        const OneLaunch one = one_launch(operands, epilogue, levels, i);
        enqueue_one(stream, one.operands, one.epilogue, problem, device, choice, operation, caller, workspace, made);
    }
}

/// A launch as the caller gave it, by which it is found again.
struct Request {
    const detail::GemmOperands& operands;
    const Epilogue& epilogue;
    detail::ChoiceContext context;
    std::uint64_t hash = detail::hash_of(operands, epilogue);

    detail::SeenLaunches::Hit find_in(detail::SeenLaunches& launches,
                                      const detail::WorkspaceMemory* memory = nullptr) const
    {
        return launches.find(hash, operands, epilogue, context, memory);
    }
    void keep_in(detail::SeenLaunches& launches, const GemmProblem& problem, const detail::KernelChoice& choice,
                 const Enqueued& made) const
    {
        launches.keep(hash, operands, epilogue, context, problem, choice, made.need, made.memory, made.launch);
    }
};

/// Enqueues a launch that was made before. Its operands have passed all checks.
void enqueue_seen(StreamRef stream, const Request& request, detail::SeenLaunches& launches,
                  const detail::SeenLaunches::Hit& seen, const DeviceProperties& device, const Workspace& workspace,
                  std::string_view operation, const std::source_location& caller)
{
    require_workspace_for(stream, workspace, seen->need, request.operands, request.epilogue, operation, caller);
    const detail::ProfilerRange range(seen->problem, seen->choice.variant);
    const detail::CurrentDevice current(stream.device(), operation, caller);
    const detail::WorkspaceLease lease = detail::lease_workspace(stream, seen->need, workspace, operation, caller);
    const detail::WorkspaceMemory memory = lease.memory();
    const auto enqueue_again = [&](const detail::SeenLaunches::Entry& entry) {
        require_enqueued(enqueue(entry.launch, stream), entry.choice.variant, entry.problem, operation, caller);
    };
    if (same_memory(memory, seen->memory)) {
        enqueue_again(*seen);
        return;
    }
    if (const auto other = request.find_in(launches, &memory)) {
        enqueue_again(*other);
        return;
    }
    Enqueued made(seen->need);
    made.memory = memory;
    detail::GemmOperands operands = request.operands;
    Epilogue epilogue = request.epilogue;
    detail::share_single_matrices(operands, epilogue);
    const OneLaunch one = one_launch(operands, epilogue, detail::levels_of(detail::problem_of(operands, epilogue)), 0);
    encode_and_enqueue(stream, one.operands, one.epilogue, seen->problem, device, seen->choice, operation, caller,
                       made);
    request.keep_in(launches, seen->problem, seen->choice, made);
}

}  // namespace

namespace detail {

void enqueue_gemm(StreamRef stream, const GemmOperands& operands, const Epilogue& epilogue, const GemmProblem& problem,
                  const DeviceProperties& device, const KernelChoice& choice, std::string_view operation,
                  const std::source_location& caller)
{
    Enqueued made(workspace_need(problem, choice));
    enqueue_one(stream, operands, epilogue, problem, device, choice, operation, caller, Workspace(), made);
}

void launch_gemm(StreamRef stream, const GemmOperands& given, const Epilogue& given_epilogue, Variant variant,
                 const Workspace& workspace, const std::source_location& caller)
{
    const Device owner(stream.device(), caller);
    const DeviceProperties& device = owner.properties();
    const Request request{given, given_epilogue, {stream.device(), variant, workspace.limit(), tuning_generation()}};
    SeenLaunches& launches = seen_without_plan(request.hash);
    if (const auto seen = request.find_in(launches)) {
        enqueue_seen(stream, request, launches, seen, device, workspace, launch_operation, caller);
        return;
    }
    require_operands(stream, given, given_epilogue, launch_operation, caller);
    GemmOperands operands = given;
    Epilogue epilogue = given_epilogue;
    share_single_matrices(operands, epilogue);
    const GemmProblem problem = problem_of(operands, epilogue);
    const BatchLevels levels = levels_of(problem);
    const GemmProblem one = one_launch(problem, levels);
    const KernelChoice chosen = choose_kernel(one, device, variant, launch_operation, caller, workspace.limit());
    if (!is_empty(problem)) {
        Enqueued made(workspace_need(one, chosen));
        require_workspace_for(stream, workspace, made.need, operands, epilogue, launch_operation, caller);
        enqueue_levels(stream, operands, epilogue, one, levels, device, chosen, workspace, launch_operation, caller,
                       made);
        if (levels.launches == 1 && launches.has_missed_before(request.hash)) {
            request.keep_in(launches, one, chosen, made);
        }
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
    const DeviceProperties& properties = *kept_limited(&device.properties(), planned.max_sms);
    const detail::KernelChoice chosen =
        detail::choose_kernel(detail::one_launch(planned), properties, variant, operation, caller, workspace_limit);
    return {planned, properties, device.ordinal(), variant, workspace_limit, chosen};
}

void GemmPlan::launch_checked(StreamRef stream, const detail::GemmOperands& given, const Epilogue& given_epilogue,
                              const Workspace& workspace, const std::source_location& caller) const
{
    detail::require_same_device(plan_launch_operation, caller, "the plan", device_, "the stream", stream.device());
    const Request request{given, given_epilogue, {}};
    if (const auto seen = request.find_in(*seen_)) {
        enqueue_seen(stream, request, *seen_, seen, *properties_, workspace, plan_launch_operation, caller);
        return;
    }
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
    if (detail::backend_of(choice_.variant).keeps_planned_alignment()) {
        problem.a.address_alignment = std::min(problem.a.address_alignment, problem_.a.address_alignment);
        problem.b.address_alignment = std::min(problem.b.address_alignment, problem_.b.address_alignment);
    }
    if (!is_empty(problem)) {
        const detail::BatchLevels levels = detail::levels_of(problem_);
        const GemmProblem one = detail::one_launch(problem, levels);
        Enqueued made(detail::workspace_need(one, choice_));
        require_workspace_for(stream, workspace, made.need, operands, epilogue, plan_launch_operation, caller);
        enqueue_levels(stream, operands, epilogue, one, levels, *properties_, choice_, workspace, plan_launch_operation,
                       caller, made);
        if (levels.launches == 1) {
            request.keep_in(*seen_, one, choice_, made);
        }
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
    return detail::explain_choice(problem, limited(device, problem.max_sms), variant);
}

}  // namespace tessera
