#include "gemm/backend.hpp"
#include "gemm/mma/mma_launch.hpp"

namespace tessera::detail {
namespace {

class MmaBackend final : public Backend {
public:
    bool has_tensor_cores_of(const DeviceProperties& device) const noexcept override
    {
        return has_mma_code(InputTypes(ElementType::f16), device);
    }
    std::optional<Refusal> find_refusal(Variant /*variant*/, const GemmRequest& request) const override
    {
        return find_mma_refusal(request.problem, request.device);
    }
    std::size_t required_alignment(Variant /*variant*/, InputTypes input) const noexcept override
    {
        return size_of(input);  // narrower copies, or single elements
    }
    KernelChoice choose(Variant /*variant*/, const GemmRequest& request, std::size_t workspace_limit) const override
    {
        return choose_mma(request.problem, request.device, workspace_limit);
    }
    void add_candidates(Variant /*variant*/, const GemmRequest& request, std::vector<KernelChoice>& to) const override
    {
        add_mma_candidates(request.problem, request.device, to);
    }
    bool is_valid(const GemmRequest& request, const KernelChoice& choice) const override
    {
        return is_mma_choice_valid(request.problem, request.device, choice);
    }
    std::size_t planned_alignment(Variant /*variant*/, InputTypes /*input*/) const noexcept override
    {
        return mma_alignment;
    }
    // Only one configuration takes operands that are not aligned.
    bool keeps_planned_alignment() const noexcept override { return true; }

    std::string_view config_name(InputTypes input, std::uint8_t config) const noexcept override
    {
        const auto table = kernels::mma_kernels(input);
        return config < table.size() ? table[config].name : std::string_view();
    }
    std::string describe_config(const GemmProblem& problem, const KernelChoice& choice) const override
    {
        return describe_mma(problem, choice);
    }
    std::string describe(const GemmRequest& request, const KernelChoice& choice) const override
    {
        return "as " + describe_mma(request.problem, choice);
    }
    WorkspaceNeed workspace(const GemmProblem& problem, const KernelChoice& choice) const override
    {
        return mma_workspace(problem, choice);
    }
    CallStatus encode(EncodedLaunch& launch, const GemmRequest& request, const KernelChoice& choice,
                      const kernels::GemmArguments& arguments, const WorkspaceMemory& memory) const override
    {
        return encode_mma(launch, request.problem, request.device, choice, arguments, memory);
    }
};

constinit const MmaBackend backend{};

}  // namespace

const Backend& mma_backend() noexcept { return backend; }

}  // namespace tessera::detail
