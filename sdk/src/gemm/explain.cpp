/// The text of explain(): which variant runs, why, and why each other one does not.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "gemm/backend.hpp"
#include "gemm/gemm_batches.hpp"
#include "gemm/variant_chooser.hpp"
#include "gemm/variant_table.hpp"
#include "gemm/workspace.hpp"
#include "tuning/tuning_table.hpp"

namespace tessera::detail {
namespace {

/// Says what was measured, and how long ago.
std::string describe_tuned(const detail::TunedChoice& tuned)
{
    const std::int64_t now =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
    constexpr std::int64_t hour = 3600;
    const std::int64_t hours = std::max<std::int64_t>(now - tuned.when, 0) / hour;
    return fmt::format("measured {} ago as the fastest: {:.2f} us; the untuned choice took {:.2f} us",
                       hours < 48 ? fmt::format("{} hours", hours) : fmt::format("{} days", hours / 24),
                       tuned.seconds * 1e6, tuned.untuned_seconds * 1e6);
}

constexpr int first_with_tf32 = 80;

/// Says why tensor cores are not used; empty if they are.
std::string describe_missing_tensor_cores(Variant chosen, Variant wanted, const GemmProblem& problem,
                                          const DeviceProperties& device)
{
    if (backend_of(chosen).has_tensor_cores_of(device)) {
        return {};
    }
    std::string reason;
    if (!has_tensor_core_kernels(device)) {
        reason = fmt::format(
            "this build of the library has no code for those of {}, so every product runs on CUDA cores", device.name);
    } else if (problem.input == InputTypes(ElementType::f32) && device.compute_capability() < first_with_tf32) {
        reason = fmt::format("those of {} do not multiply f32", device.name);
    } else if (problem.input == InputTypes(ElementType::f32)) {
        reason = "they would round f32 to tf32; to allow that, pass views of tf32";
    } else if (wanted == chosen) {
        reason = fmt::format("{}, which runs on CUDA cores, was requested", tessera::to_string(wanted));
    } else {
        reason = "no variant that uses them is eligible (see below)";
    }
    return fmt::format("  tensor cores: not used; {}\n", reason);
}

/// Says why the library's own choice, `chosen`, was preferred to an eligible variant.
std::string describe_weakness(const VariantEntry& entry, Variant chosen, bool tuned, const DeviceProperties& device)
{
    if (tuned) {
        return "another variant was measured as the fastest";
    }
    if (backend_of(chosen).has_tensor_cores_of(device) && !entry.backend().has_tensor_cores_of(device)) {
        return "does not use tensor cores";
    }
    return std::string(entry.weakness);
}

}  // namespace

std::string explain_choice(const GemmProblem& given, const DeviceProperties& device, Variant wanted,
                           std::optional<KernelChoice> made)
{
    const GemmProblem whole = resolved(given);
    const BatchLevels levels = levels_of(whole);
    const GemmProblem problem = one_launch(whole, levels);
    std::optional<TunedChoice> tuned;
    if (wanted == Variant::automatic) {
        tuned = find_valid_tuned(problem, device);
        if (tuned && made && !(*made == tuned->choice)) {
            tuned.reset();  // measured after the plan was made
        }
    }
    if (tuned && !made) {
        made = tuned->choice;
    }
    std::string text = fmt::format("{}\n  on {} (compute capability {}.{}, {} SMs)\n", whole.describe(), device.name,
                                   device.compute_capability_major, device.compute_capability_minor, device.sm_count);
    if (levels.launches > 1) {
        text += fmt::format(
            "  as {} launches of {} matrices each, because the two levels of batches do not fold into one\n",
            levels.launches, levels.per_launch);
    }
    if (!made) {
        const Variant variant = wanted == Variant::automatic             ? preferred_variant(problem, device)
                                : !find_refusal(wanted, problem, device) ? wanted
                                                                         : Variant::automatic;
        if (variant != Variant::automatic) {
            made = backend_of(variant).choose(variant, {problem, device}, unlimited_workspace);
        }
    }
    const auto chosen = std::find_if(variants.begin(), variants.end(),
                                     [&](const VariantEntry& entry) { return made && made->variant == entry.variant; });
    if (chosen == variants.end()) {
        text += fmt::format("  runs: nothing; {} cannot run it\n", tessera::to_string(wanted));
    } else if (problem.m == 0 || problem.n == 0 || problem.batches == 0) {
        text += "  runs: nothing, because D is empty\n";
    } else {
        text += fmt::format("  runs: {} {}\n", chosen->name, chosen->backend().describe({problem, device}, *made));
        if (const std::size_t bytes = workspace_bytes(workspace_need(problem, *made)); bytes > 0) {
            text += fmt::format(
                "  workspace: {} bytes; a stream's first such launch allocates it unless you pass one\n", bytes);
        }
        text += tuned                          ? "  why: " + describe_tuned(*tuned) + "\n"
                : wanted == Variant::automatic ? fmt::format("  why: {}\n", chosen->strength)
                                               : "  why: it was requested\n";
        text += describe_missing_tensor_cores(chosen->variant, wanted, problem, device);
    }
    // Neighbours that are passed over for the same reason share a line.
    std::string names;
    std::string reason;
    const auto end_line = [&] {
        if (!names.empty()) {
            text += fmt::format("  passed over: {}: {}\n", names, reason);
        }
    };
    for (const VariantEntry& entry : variants) {
        if (chosen != variants.end() && entry.variant == chosen->variant) {
            continue;
        }
        const auto refusal = find_refusal(entry.variant, problem, device);
        std::string own;
        if (refusal) {
            own = "not eligible: " + to_string(*refusal, device);
        } else if (wanted != Variant::automatic) {
            own = "eligible, but not requested";
        } else {
            own = "eligible, but " + describe_weakness(entry, chosen->variant, tuned.has_value(), device);
        }
        if (!names.empty() && own == reason) {
            names += fmt::format(", {}", entry.name);
            continue;
        }
        end_line();
        names = entry.name;
        reason = std::move(own);
    }
    end_line();
    return text;
}

}  // namespace tessera::detail
