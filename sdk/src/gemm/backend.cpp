#include "gemm/backend.hpp"

#include <algorithm>
#include <array>

#include "gemm/variant_table.hpp"

namespace tessera::detail {

std::optional<Variant> Backend::faster_variant(const GemmRequest& /*request*/) const { return std::nullopt; }

KernelChoice Backend::choose(Variant variant, const GemmRequest& /*request*/, std::size_t /*workspace_limit*/) const
{
    return {.variant = variant};
}

void Backend::add_candidates(Variant variant, const GemmRequest& /*request*/, std::vector<KernelChoice>& to) const
{
    to.push_back({.variant = variant});
}

bool Backend::is_valid(const GemmRequest& /*request*/, const KernelChoice& /*choice*/) const { return true; }

std::size_t Backend::planned_alignment(Variant variant, InputTypes input) const noexcept
{
    return required_alignment(variant, input);
}

bool Backend::keeps_planned_alignment() const noexcept { return false; }

std::string_view Backend::config_name(InputTypes /*input*/, std::uint8_t /*config*/) const noexcept { return {}; }

std::string Backend::describe_config(const GemmProblem& /*problem*/, const KernelChoice& /*choice*/) const
{
    return {};
}

WorkspaceNeed Backend::workspace(const GemmProblem& /*problem*/, const KernelChoice& /*choice*/) const { return {}; }

const Backend& backend_of(Variant variant) noexcept { return entry_of(variant).backend(); }

bool has_tensor_core_kernels(const DeviceProperties& device) noexcept
{
    return std::ranges::any_of(variants,
                               [&](const VariantEntry& entry) { return entry.backend().has_tensor_cores_of(device); });
}

}  // namespace tessera::detail
