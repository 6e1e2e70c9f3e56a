// Prints docs/support.md: which variant computes what, where. Asks the library about every combination instead of
// knowing anything itself. Needs no GPU. A test compares the page with this program's output.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tessera/device.hpp"
#include "tessera/gemm.hpp"

namespace {

using namespace tessera;

constexpr InputTypes input_types[] = {ElementType::f32,
                                      ElementType::f16,
                                      ElementType::bf16,
                                      ElementType::tf32,
                                      ElementType::f8e4m3,
                                      ElementType::f8e5m2,
                                      {ElementType::f8e4m3, ElementType::f8e5m2},
                                      {ElementType::f8e5m2, ElementType::f8e4m3}};
constexpr ElementType output_types[] = {ElementType::f32, ElementType::f16, ElementType::bf16};
constexpr std::pair<int, int> compute_capabilities[] = {{7, 5},  {8, 0},  {8, 6},  {8, 7},  {8, 9}, {9, 0},
                                                        {10, 0}, {10, 3}, {11, 0}, {12, 0}, {12, 1}};
/// Bytes; as far as any kernel could ask for.
constexpr std::size_t largest_alignment = 256;
/// Extents without a common factor: whatever a variant needs, it needs of addresses and strides, not of these.
constexpr std::int64_t m = 257, n = 251, k = 241;
/// Vectors between the matrices of a batch: more than there are, and odd, so that a stride's bytes are no better
/// aligned than the leading dimension's.
constexpr std::int64_t odd_vector_count = 301;
/// Storage orders of A, B and D: one bit each.
constexpr unsigned order_combinations = 8;

GemmProblem problem_of(InputTypes input, ElementType output, unsigned orders, std::size_t alignment)
{
    // The shortest leading dimension whose bytes are a multiple of `alignment` and of nothing larger.
    const auto layout = [](bool row_major, std::int64_t rows, std::int64_t columns, ElementType type,
                           std::size_t bytes) {
        const auto step = static_cast<std::int64_t>(bytes / size_of(type));
        const std::int64_t steps = (row_major ? columns : rows) / step + 1;
        const std::int64_t leading_dimension = (steps % 2 == 0 ? steps + 1 : steps) * step;
        return MatrixLayout{row_major, leading_dimension, leading_dimension * odd_vector_count, bytes};
    };
    GemmProblem problem{.m = m, .n = n, .k = k, .batches = 2, .input = input, .output = output};
    problem.a = layout((orders & 1U) != 0, m, k, input.a, alignment);
    problem.b = layout((orders & 2U) != 0, k, n, input.b, alignment);
    problem.d = layout((orders & 4U) != 0, m, n, output, size_of(output));
    return problem;
}

/// The smallest alignment with which the variant is eligible, or 0.
std::size_t needed_alignment(Variant variant, const DeviceProperties& device, InputTypes input, ElementType output,
                             unsigned orders)
{
    for (std::size_t alignment = size_of(input); alignment <= largest_alignment; alignment *= 2) {
        if (GemmPlan::refusal(problem_of(input, output, orders, alignment), device, variant).empty()) {
            return alignment;
        }
    }
    return 0;
}

std::string name_of(InputTypes input)
{
    return input.a == input.b ? std::string(to_string(input.a))
                              : fmt::format("{} x {}", to_string(input.a), to_string(input.b));
}

std::string orders_text(const std::vector<unsigned>& orders)
{
    if (orders.size() == order_combinations) {
        return "every combination";
    }
    std::string text;
    for (const unsigned order : orders) {
        text += fmt::format("{}{}{}{}", text.empty() ? "" : ", ", (order & 1U) != 0 ? 'R' : 'C',
                            (order & 2U) != 0 ? 'R' : 'C', (order & 4U) != 0 ? 'R' : 'C');
    }
    return text;
}

/// Rows of the table of what `variant` computes on `device`; empty if nothing.
std::string rows_of(Variant variant, const DeviceProperties& device)
{
    std::string rows;
    for (const InputTypes input : input_types) {
        // Outputs and orders that need the same alignment share a row.
        std::map<std::pair<std::size_t, std::string>, std::string> outputs_by_need;
        for (const ElementType output : output_types) {
            std::map<std::size_t, std::vector<unsigned>> orders_by_alignment;
            for (unsigned orders = 0; orders < order_combinations; ++orders) {
                if (const std::size_t needed = needed_alignment(variant, device, input, output, orders); needed != 0) {
                    orders_by_alignment[needed].push_back(orders);
                }
            }
            for (const auto& [alignment, orders] : orders_by_alignment) {
                std::string& outputs = outputs_by_need[{alignment, orders_text(orders)}];
                outputs += fmt::format("{}{}", outputs.empty() ? "" : ", ", to_string(output));
            }
        }
        for (const auto& [need, outputs] : outputs_by_need) {
            const bool any = need.first <= size_of(input);
            rows += fmt::format("| {} | {} | {} | {} |\n", name_of(input), outputs, need.second,
                                any ? "any" : fmt::format("multiples of {} bytes", need.first));
        }
    }
    return rows;
}

/// Whether any variant multiplies such operands on the device's tensor cores.
bool uses_tensor_cores(InputTypes input, const DeviceProperties& device)
{
    const GemmProblem problem = problem_of(input, ElementType::f32, 0, largest_alignment);
    const std::vector<Variant> all = all_variants();
    return std::any_of(all.begin(), all.end(), [&](Variant variant) {
        return !to_string(variant).starts_with("simt_") && GemmPlan::refusal(problem, device, variant).empty();
    });
}

/// Which inputs are multiplied on tensor cores, by compute capability: what a reader asks first.
std::string tensor_core_section()
{
    std::string text =
        "\n## Tensor cores\n\n"
        "Products run on tensor cores on these devices only. On all others every type runs on CUDA cores, also where "
        "the\ndevice has tensor cores for it: far below what data sheets give those.\n\n"
        "| compute capability | on tensor cores | on CUDA cores |\n|---|---|---|\n";
    for (const auto& [major, minor] : compute_capabilities) {
        const DeviceProperties device = DeviceProperties::of_compute_capability(major, minor);
        std::string with;
        std::string without;
        for (const InputTypes input : input_types) {
            std::string& names = uses_tensor_cores(input, device) ? with : without;
            names += fmt::format("{}{}", names.empty() ? "" : ", ", name_of(input));
        }
        text += fmt::format("| {}.{} ({}) | {} | {} |\n", major, minor, device.name, with.empty() ? "nothing" : with,
                            with.empty() ? "everything" : without);
    }
    return text;
}

std::string page()
{
    std::string text =
        "# What runs where\n\n"
        "Printed by `tessera-support-table`, which asks `GemmPlan::refusal` about every combination of variant, "
        "compute\n"
        "capability, element types, storage orders and alignment. A test fails when this page and the library "
        "disagree.\n\n"
        "Every variant takes any M, N and K from 0 on, any batch, every epilogue, and accumulates in f32.\n"
        "`Variant::automatic` takes the eligible one that should be the fastest; `GemmPlan::explain` says for one "
        "problem which that is.\n" +
        tensor_core_section();
    for (const Variant variant : all_variants()) {
        std::map<std::string, std::string> devices_by_rows;
        for (const auto& [major, minor] : compute_capabilities) {
            const DeviceProperties device = DeviceProperties::of_compute_capability(major, minor);
            std::string& devices = devices_by_rows[rows_of(variant, device)];
            devices += fmt::format("{}{}.{} ({})", devices.empty() ? "" : ", ", major, minor, device.name);
        }
        text += fmt::format("\n## {}\n", to_string(variant));
        for (const auto& [rows, devices] : devices_by_rows) {
            text += fmt::format("\nCompute capability {}:\n\n", devices);
            text += rows.empty() ? "nothing\n"
                                 : "| A, B | D | storage orders of A, B, D (R: row-major, C: column-major) | addresses "
                                   "and strides of A and B |\n"
                                   "|---|---|---|---|\n" +
                                       rows;
        }
    }
    DeviceProperties too_old;
    too_old.name = "A device";
    too_old.compute_capability_major = 7;
    text += fmt::format("\n## Elsewhere\n\n{}.\n",
                        GemmPlan::refusal(problem_of(ElementType::f32, ElementType::f32, 0, largest_alignment), too_old,
                                          Variant::automatic));
    return text;
}

}  // namespace

int main()
{
    std::fputs(page().c_str(), stdout);
    return 0;
}
