#include <fmt/format.h>

#include <algorithm>

#include "gemm/backend.hpp"
#include "gemm/hopper/hopper_chooser.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/hopper/hopper_measured.hpp"
#include "gemm/tma_matrix.hpp"

namespace tessera::detail {
namespace {

/// Returns true if mma_sync, which copies narrow pieces of operands, is faster than a kernel that needs a copy of them first: if a
/// single row or column of its tiles reads an operand once, and where the copy takes longer than the product.
bool is_faster_than_repacking(const GemmProblem& problem, std::int64_t alignment)
{
    const std::int64_t narrow = std::min(problem.m, problem.n);
    const double products =
        static_cast<double>(problem.m) * static_cast<double>(problem.n) * static_cast<double>(problem.k);
    return (alignment >= 8 && narrow <= 64) || (alignment >= 4 && narrow <= 512 && problem.k <= 128) ||
           (alignment >= 4 && products <= 2e8) ||
           (narrow <= 128 && std::max(problem.m, problem.n) >= 1024 && problem.k <= 64);
}

/// Returns true if mma_sync is faster where TMA loads both operands. A wgmma tile has 64 rows of A or B: of lines along M or N
/// that are shorter, TMA loads each on its own. And a product of a few stages ends before a kernel with roles has its ring full.
bool is_faster_than_wgmma(const GemmProblem& problem)
{
    const auto has_short_lines = [&](std::int64_t line, std::int64_t other) {
        return (line <= 32 && other >= 64) || (line <= 64 && problem.k <= 900);
    };
    const std::int64_t rows = problem.d.row_major ? problem.m : problem.n;
    return (!problem.a.row_major && has_short_lines(problem.m, problem.n)) ||
           (problem.b.row_major && has_short_lines(problem.n, problem.m)) || (rows <= 16 && problem.k <= 400);
}

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
    // Measured on an H200, for 16-bit elements (docs/notes/hopper-chooser.md).
    std::optional<Variant> faster_variant(const GemmRequest& request) const override
    {
        const GemmProblem& problem = request.problem;
        const std::size_t bytes = size_of(problem.input);
        if (bytes != 2 || problem.batches != 1) {
            return std::nullopt;
        }
        const std::int64_t alignment =
            std::min(line_alignment(problem.a, bytes, problem.a.row_major ? problem.m : problem.k),
                     line_alignment(problem.b, bytes, problem.b.row_major ? problem.k : problem.n));
        const bool is_faster =
            alignment < tma_alignment ? is_faster_than_repacking(problem, alignment) : is_faster_than_wgmma(problem);
        return is_faster ? std::optional(Variant::mma_sync) : std::nullopt;
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
        const MeasuredChoice* const measured = find_measured(request.problem, request.device);
        const bool is_known = measured != nullptr && is_measured(*measured, choice);
        return "as " + describe_hopper(request.problem, choice) + (is_known ? ", measured on an H200" : "");
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
