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
    // A wgmma tile has 64 rows of A or B, of which TMA fills few. Measured on an H200, for 16-bit elements
    // (docs/notes/hopper-chooser.md).
    std::optional<Variant> faster_variant(const GemmRequest& request) const override
    {
        constexpr std::int64_t longest_line = 32;  // elements
        constexpr std::int64_t least_extent = 64;  // of the other operand
        const GemmProblem& problem = request.problem;
        const std::size_t bytes = size_of(problem.input);
        const bool short_a = !problem.a.row_major && problem.m <= longest_line && problem.n >= least_extent;
        const bool short_b = problem.b.row_major && problem.n <= longest_line && problem.m >= least_extent;
        const bool is_measured = bytes == 2 && problem.batches == 1 && (short_a || short_b);
        if (!is_measured ||
            !tma_can_load(problem.a, bytes, problem.a.row_major ? problem.m : problem.k, problem.batches) ||
            !tma_can_load(problem.b, bytes, problem.b.row_major ? problem.k : problem.n, problem.batches)) {
            return std::nullopt;
        }
        return Variant::mma_sync;
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
