// Prints docs/support.md: which variant computes what, where. Asks the library about every combination instead of
// knowing anything itself. Needs no GPU. A test compares the page with this program's output.

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tessera/device.hpp"
#include "tessera/gemm.hpp"

namespace {

using namespace tessera;

/// Inputs that the page names together while the same holds for all of them.
struct InputGroup {
    std::string_view name;
    std::vector<InputTypes> inputs;
};

const InputGroup input_groups[] = {{"f32", {ElementType::f32}},
                                   {"f16", {ElementType::f16}},
                                   {"bf16", {ElementType::bf16}},
                                   {"tf32", {ElementType::tf32}},
                                   {"f8",
                                    {ElementType::f8e4m3,
                                     ElementType::f8e5m2,
                                     {ElementType::f8e4m3, ElementType::f8e5m2},
                                     {ElementType::f8e5m2, ElementType::f8e4m3}}}};
constexpr ElementType output_types[] = {ElementType::f32, ElementType::f16, ElementType::bf16};

/// GPUs by the names that are on the box.
struct Gpus {
    int major, minor;
    std::string_view names;
};

constexpr Gpus gpus[] = {{7, 5, "T4, RTX 20 series, GTX 16 series"},
                         {8, 0, "A100, A30"},
                         {8, 6, "A40, A10, RTX A6000, RTX 30 series"},
                         {8, 7, "Jetson Orin"},
                         {8, 9, "L40S, L4, RTX 6000 Ada, RTX 40 series (RTX 4090)"},
                         {9, 0, "H100, H200, GH200"},
                         {10, 0, "B200, GB200"},
                         {10, 3, "B300, GB300"},
                         {11, 0, "Jetson Thor"},
                         {12, 0, "RTX PRO 6000 Blackwell, RTX 50 series (RTX 5090)"},
                         {12, 1, "GB10 (DGX Spark)"}};
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

void append(std::string& list, std::string_view item) { list += fmt::format("{}{}", list.empty() ? "" : ", ", item); }

/// The names of the inputs for which `property` gives `value`; groups by their own name where all of a group do.
template <class Property, class Value>
std::string inputs_with(Property property, const Value& value)
{
    std::string names;
    for (const InputGroup& group : input_groups) {
        const auto has = [&](InputTypes input) { return property(input) == value; };
        if (std::all_of(group.inputs.begin(), group.inputs.end(), has)) {
            append(names, group.name);
            continue;
        }
        for (const InputTypes input : group.inputs) {
            if (has(input)) {
                append(names, name_of(input));
            }
        }
    }
    return names;
}

std::string orders_text(const std::vector<unsigned>& orders)
{
    if (orders.size() == order_combinations) {
        return "any";
    }
    std::string text;
    for (const unsigned order : orders) {
        const auto name = [&](unsigned bit) { return (order & bit) != 0 ? "row" : "column"; };
        append(text, fmt::format("{}-{}-{}", name(1U), name(2U), name(4U)));
    }
    return text;
}

/// What a variant needs of operands of one type on one device, as columns of the page: outputs, orders, alignment.
/// Empty if it does not take them.
std::vector<std::string> needs_of(Variant variant, const DeviceProperties& device, InputTypes input)
{
    // Outputs that need the same share a line.
    std::map<std::pair<std::string, std::string>, std::string> outputs_by_need;
    for (const ElementType output : output_types) {
        std::map<std::size_t, std::vector<unsigned>> orders_by_alignment;
        for (unsigned orders = 0; orders < order_combinations; ++orders) {
            if (const std::size_t needed = needed_alignment(variant, device, input, output, orders); needed != 0) {
                orders_by_alignment[needed].push_back(orders);
            }
        }
        for (const auto& [alignment, orders] : orders_by_alignment) {
            const bool any = alignment <= size_of(input);
            append(outputs_by_need[{orders_text(orders), any ? "any" : fmt::format("{}-byte", alignment)}],
                   to_string(output));
        }
    }
    std::vector<std::string> lines;
    for (const auto& [need, outputs] : outputs_by_need) {
        lines.push_back(fmt::format("{} | {} | {}", outputs, need.first, need.second));
    }
    return lines;
}

/// Rows of the table of what `variant` computes on `device`, without their first two columns; none if nothing.
std::vector<std::string> rows_of(Variant variant, const DeviceProperties& device)
{
    const auto needs = [&](InputTypes input) { return needs_of(variant, device, input); };
    std::vector<std::vector<std::string>> seen;
    std::vector<std::string> rows;
    for (const InputGroup& group : input_groups) {
        for (const InputTypes input : group.inputs) {
            const auto lines = needs(input);
            if (lines.empty() || std::find(seen.begin(), seen.end(), lines) != seen.end()) {
                continue;
            }
            seen.push_back(lines);
            const std::string names = inputs_with(needs, lines);
            for (const std::string& line : lines) {
                rows.push_back(fmt::format("{} | {}", names, line));
            }
        }
    }
    return rows;
}

/// The variants that multiply such operands on the device's tensor cores: "`mma_sync`, `hopper`".
std::string tensor_core_variants(InputTypes input, const DeviceProperties& device)
{
    const GemmProblem problem = problem_of(input, ElementType::f32, 0, largest_alignment);
    std::string variants;
    for (const Variant variant : all_variants()) {
        const std::string_view name = to_string(variant);
        if (!name.starts_with("simt_") && GemmPlan::refusal(problem, device, variant).empty()) {
            append(variants, fmt::format("`{}`", name));
        }
    }
    return variants;
}

/// What runs on which GPU: what a reader wants to know first.
std::string gpu_section()
{
    std::string text = R"(
## By GPU

Any product runs on every GPU below. The question is whether it runs on tensor cores. Where it does not, it runs on
CUDA cores by the `simt_*` variants: the results are right, but the speed is far below the data sheet's tensor-core figures.

| GPU | compute capability | on tensor cores | on CUDA cores |
|---|---|---|---|
)";
    for (const auto& [major, minor, names] : gpus) {
        const DeviceProperties device = DeviceProperties::of_compute_capability(major, minor);
        const auto variants = [&](InputTypes input) { return tensor_core_variants(input, device); };
        std::vector<std::string> families;
        for (const InputGroup& group : input_groups) {
            for (const InputTypes input : group.inputs) {
                if (const std::string family = variants(input);
                    !family.empty() && std::find(families.begin(), families.end(), family) == families.end()) {
                    families.push_back(family);
                }
            }
        }
        std::string on_tensor_cores;
        for (const std::string& family : families) {
            append(on_tensor_cores, fmt::format("{} by {}", inputs_with(variants, family), family));
        }
        text += fmt::format("| {} | {}.{} | {} | {} |\n", names, major, minor,
                            families.empty() ? "nothing" : on_tensor_cores,
                            families.empty() ? "everything" : inputs_with(variants, std::string()));
    }
    return text + R"(
`f8` stands for `f8e4m3`, `f8e5m2` and their mixtures. `blackwell` has run on the emulated B200, B300 and Thor only:
nobody here has run them on a Blackwell GPU.
)";
}

/// What each variant takes. Variants that take the same share a row.
std::string variant_section()
{
    struct Entry {
        std::string variants;
        std::string devices;
        std::vector<std::string> rows;
    };
    std::vector<Entry> entries;
    for (const Variant variant : all_variants()) {
        std::vector<std::pair<std::vector<std::string>, std::string>> devices_by_rows;
        for (const auto& [major, minor, names] : gpus) {
            const auto rows = rows_of(variant, DeviceProperties::of_compute_capability(major, minor));
            if (rows.empty()) {
                continue;
            }
            auto found = std::find_if(devices_by_rows.begin(), devices_by_rows.end(),
                                      [&](const auto& entry) { return entry.first == rows; });
            if (found == devices_by_rows.end()) {
                found = devices_by_rows.insert(found, {rows, ""});
            }
            append(found->second, fmt::format("{}.{}", major, minor));
        }
        for (auto& [rows, devices] : devices_by_rows) {
            const std::size_t count = static_cast<std::size_t>(std::count(devices.begin(), devices.end(), ',')) + 1;
            const std::string where = count == std::size(gpus) ? "all" : devices;
            const auto same = std::find_if(entries.begin(), entries.end(), [&](const Entry& entry) {
                return entry.devices == where && entry.rows == rows;
            });
            const std::string name = fmt::format("`{}`", to_string(variant));
            if (same == entries.end()) {
                entries.push_back({name, where, rows});
            } else {
                append(same->variants, name);
            }
        }
    }
    std::string text = R"(
## By variant

| variant | compute capability | A and B | D | storage orders of A, B, D | addresses and strides of A and B |
|---|---|---|---|---|---|
)";
    for (const Entry& entry : entries) {
        for (std::size_t i = 0; i < entry.rows.size(); ++i) {
            text += fmt::format("| {} | {} | {} |\n", i == 0 ? entry.variants : "", i == 0 ? entry.devices : "",
                                entry.rows[i]);
        }
    }
    return text + R"(
Storage orders: *any* is all eight combinations of row-major and column-major. Addresses and strides: *16-byte* means that
addresses, leading dimensions and batch strides are multiples of 16 bytes.
)";
}

std::string page()
{
    DeviceProperties too_old;
    too_old.name = "This device";
    too_old.compute_capability_major = 7;
    const std::string refused = GemmPlan::refusal(problem_of(ElementType::f32, ElementType::f32, 0, largest_alignment),
                                                  too_old, Variant::automatic);
    return R"(# What runs where

Every variant takes any M, N and K from 0 on, any batch and every epilogue, and accumulates in f32.
`Variant::automatic` runs the eligible variant that should be the fastest; `GemmPlan::explain` says which one that is for
one problem, on any GPU.
)" + gpu_section() +
           variant_section() +
           fmt::format(R"(
## Older GPUs

A GPU older than 7.5 is refused with these words: "{}".

## Where this page comes from

`tessera-support-table` prints it. The program asks `GemmPlan::refusal` about every combination of variant, compute
capability, element types, storage orders and alignment. A test fails when the page and the library disagree.
)",
                       refused);
}

}  // namespace

int main()
{
    std::fputs(page().c_str(), stdout);
    return 0;
}
