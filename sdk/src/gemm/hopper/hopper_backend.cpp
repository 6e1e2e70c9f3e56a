#include <fmt/format.h>

#include "gemm/backend.hpp"
#include "gemm/hopper/hopper_chooser.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/tma_matrix.hpp"

namespace tessera::detail {
namespace {

class HopperBackend final : public Backend {
public:
    bool has_tensor_cores_of(const DeviceProperties& device) const noexcept override
    {
        return device.compute_capability() == hopper_compute_capability;
    }
    std::optional<Refusal> find_refusal(Variant /*variant*/, const GemmRequest& request) const override
    {
        return find_hopper_refusal(request.problem, request.device);
    }
    std::size_t required_alignment(Variant /*variant*/, InputTypes input) const noexcept override
    {
        return size_of(input);  // other operands are loaded by threads, or repacked
    }
    // There is a configuration without a workspace for every eligible problem: kernels with the fallback load accept
    // operands that others need repacked.
    KernelChoice choose(Variant /*variant*/, const GemmRequest& request, std::size_t workspace_limit) const override
    {
        return choose_hopper(request.problem, request.device, workspace_limit);
    }
    void add_candidates(Variant /*variant*/, const GemmRequest& request, std::vector<KernelChoice>& to) const override
    {
        const std::vector<KernelChoice> candidates = hopper_candidates(request.problem, request.device);
        to.insert(to.end(), candidates.begin(), candidates.end());
    }
    bool is_valid(const GemmRequest& request, const KernelChoice& choice) const override
    {
        return is_hopper_choice_valid(request.problem, request.device, choice);
    }
    std::size_t planned_alignment(Variant /*variant*/, InputTypes /*input*/) const noexcept override
    {
        return tma_alignment;
    }
    // A configuration depends on how each operand is loaded.
    bool keeps_planned_alignment() const noexcept override { return true; }

    std::string_view config_name(InputTypes input, std::uint8_t config) const noexcept override
    {
        const auto table = kernels::hopper_kernels(size_of(input));
        return config < table.size() ? table[config].name : std::string_view();
    }
    std::string describe_config(const GemmProblem& problem, const KernelChoice& choice) const override
    {
        return describe_hopper(problem, choice);
    }
    std::string describe(const GemmRequest& request, const KernelChoice& choice) const override
    {
        return "as " + describe_hopper(request.problem, choice);
    }
    WorkspaceNeed workspace(const GemmProblem& problem, const KernelChoice& choice) const override
    {
        return hopper_workspace(problem, choice);
    }
    CallStatus encode(EncodedLaunch& launch, const GemmRequest& request, const KernelChoice& choice,
                      const kernels::GemmArguments& arguments, const WorkspaceMemory& memory) const override
    {
        return encode_hopper(launch, request.problem, choice, request.device, arguments, memory);
    }
};

constinit const HopperBackend backend{};

}  // namespace

const Backend& hopper_backend() noexcept { return backend; }

}  // namespace tessera::detail
