#include <fmt/format.h>

#include <cmath>

#include "gemm/backend.hpp"
#include "gemm/blackwell/blackwell_chooser.hpp"
#include "gemm/blackwell/blackwell_launch.hpp"

namespace tessera::detail {
namespace {

class BlackwellBackend final : public Backend {
public:
    bool has_tensor_cores_of(const DeviceProperties& device) const noexcept override
    {
        return device.compute_capability_major == blackwell_compute_capability / 10;
    }
    std::optional<Refusal> find_refusal(Variant variant, const GemmRequest& request) const override
    {
        return find_blackwell_refusal(variant, request.problem, request.device);
    }
    std::size_t required_alignment(Variant /*variant*/, InputTypes input) const noexcept override
    {
        return size_of(input);  // other operands are loaded by threads
    }
    KernelChoice prefer(Variant /*first*/, const GemmRequest& request, std::size_t /*workspace_limit*/) const override
    {
        return {.variant = choose_blackwell(request.problem, request.device)};
    }
    std::string describe(const GemmRequest& request, const KernelChoice& choice) const override
    {
        return "with " + describe_blackwell(choice.variant, request.problem, request.device);
    }
    std::string describe_weakness(Variant variant, Variant chosen, const GemmRequest& request) const override
    {
        if (!is_blackwell_candidate(variant)) {
            return {};
        }
        const auto& [problem, device] = request;
        constexpr double percent = 100;
        const double more = blackwell_cycles(variant, problem, device) / blackwell_cycles(chosen, problem, device) - 1;
        return more * percent < 1 ? fmt::format("no faster than {} in that model", tessera::to_string(chosen))
                                  : fmt::format("{:.0f} % more cycles in that model", std::round(more * percent));
    }
    CallStatus encode(EncodedLaunch& launch, const GemmRequest& request, const KernelChoice& choice,
                      const kernels::GemmArguments& arguments, const WorkspaceMemory& /*memory*/) const override
    {
        return encode_blackwell(launch, request.problem, choice.variant, arguments, request.device);
    }
};

constinit const BlackwellBackend backend{};

}  // namespace

const Backend& blackwell_backend() noexcept { return backend; }

}  // namespace tessera::detail
