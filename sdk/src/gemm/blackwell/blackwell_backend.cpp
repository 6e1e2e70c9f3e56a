#include "gemm/backend.hpp"
#include "gemm/blackwell/blackwell_chooser.hpp"
#include "gemm/blackwell/blackwell_launch.hpp"
#include "gemm/tma_matrix.hpp"

namespace tessera::detail {
namespace {

class BlackwellBackend final : public Backend {
public:
    bool has_tensor_cores_of(const DeviceProperties& device) const noexcept override
    {
        return has_tensor_memory(device);
    }
    std::optional<Refusal> find_refusal(Variant /*variant*/, const GemmRequest& request) const override
    {
        return find_blackwell_refusal(request.problem, request.device);
    }
    std::size_t required_alignment(Variant /*variant*/, InputTypes input) const noexcept override
    {
        return size_of(input);  // other operands are loaded by threads
    }
    KernelChoice choose(Variant /*variant*/, const GemmRequest& request, std::size_t workspace_limit) const override
    {
        return choose_blackwell(request.problem, request.device, workspace_limit);
    }
    void add_candidates(Variant /*variant*/, const GemmRequest& request, std::vector<KernelChoice>& to) const override
    {
        for_each_blackwell_candidate(request.problem, request.device,
                                     [&](const KernelChoice& choice) { to.push_back(choice); });
    }
    bool is_valid(const GemmRequest& request, const KernelChoice& choice) const override
    {
        return is_blackwell_choice_valid(request.problem, choice);
    }
    std::size_t planned_alignment(Variant /*variant*/, InputTypes /*input*/) const noexcept override
    {
        return tma_alignment;
    }
    // A configuration depends on how the operands are loaded.
    bool keeps_planned_alignment() const noexcept override { return true; }

    std::string_view config_name(InputTypes input, std::uint8_t config) const noexcept override
    {
        const auto table = kernels::blackwell_kernels(size_of(input));
        return config < table.size() ? table[config].name() : std::string_view();
    }
    std::string describe_config(const GemmProblem& problem, const KernelChoice& choice) const override
    {
        return describe_blackwell(problem, choice);
    }
    std::string describe(const GemmRequest& request, const KernelChoice& choice) const override
    {
        return "as " + describe_blackwell(request.problem, choice);
    }
    WorkspaceNeed workspace(const GemmProblem& problem, const KernelChoice& choice) const override
    {
        return blackwell_workspace(problem, choice);
    }
    CallStatus encode(EncodedLaunch& launch, const GemmRequest& request, const KernelChoice& choice,
                      const kernels::GemmArguments& arguments, const WorkspaceMemory& memory) const override
    {
        return encode_blackwell(launch, request.problem, choice, arguments, request.device, memory);
    }
};

constinit const BlackwellBackend backend{};

}  // namespace

const Backend& blackwell_backend() noexcept { return backend; }

}  // namespace tessera::detail
