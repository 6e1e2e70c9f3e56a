#include "gemm/plan_differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "gemm/backend.hpp"
#include "gemm/variant_chooser.hpp"

namespace tessera::detail {
namespace {

/// Returns true if the kernel can run one launch of `given` with no more workspace than planned.
bool runs(const GemmProblem& planned, const KernelChoice& choice, const GemmProblem& given,
          const DeviceProperties& device)
{
    const BatchLevels levels = levels_of(planned);
    const GemmProblem one = one_launch(given, levels);
    if (find_refusal(choice.variant, one, device)) {
        return false;
    }
    const Backend& backend = backend_of(choice.variant);
    return backend.workspace(one, choice).copy_bytes <=
           backend.workspace(one_launch(planned, levels), choice).copy_bytes;
}

bool is_aligned_as(const MatrixLayout& planned, const MatrixLayout& given) noexcept
{
    return planned.address_alignment <= given.address_alignment;
}

bool has_layout(const MatrixLayout& planned, const MatrixLayout& given, const GemmProblem& problem) noexcept
{
    return planned.row_major == given.row_major && planned.leading_dimension == given.leading_dimension &&
           (problem.batches <= 1 || planned.batch_stride == given.batch_stride) &&
           (problem.outer_batches <= 1 || planned.outer_stride == given.outer_stride);
}

/// Returns true if the batches of C and the pre-activation can be launched as planned. Launches of one level accept any C; levels that were planned
/// to fold into one must fold.
bool has_levels(const GemmProblem& planned, const GemmProblem& given) noexcept
{
    const BatchLevels levels = levels_of(planned);
    return !levels.folded() || levels == levels_of(given);
}

class Differences {
public:
    template <class Value>
    void compare(std::string_view what, const Value& planned, const Value& given)
    {
        if (!(planned == given)) {
            add("{} is {}, but the plan was prepared for {}", what, given, planned);
        }
    }
    template <class... Arguments>
    void add(fmt::format_string<Arguments...> format, Arguments&&... arguments)
    {
        text_ += text_.empty() ? "" : "\n";
        fmt::format_to(std::back_inserter(text_), format, std::forward<Arguments>(arguments)...);
    }
    const std::string& text() const noexcept { return text_; }

private:
    std::string text_;
};

std::string_view order_of(const MatrixLayout& layout) { return layout.row_major ? "row-major" : "column-major"; }

void compare_layouts(Differences& found, char name, const MatrixLayout& planned, const MatrixLayout& given,
                     const GemmProblem& problem)
{
    if (planned.row_major != given.row_major) {  // the leading dimension then has another meaning
        found.compare(fmt::format("{}'s order", name), order_of(planned), order_of(given));
    } else {
        found.compare(fmt::format("{}'s leading dimension", name), planned.leading_dimension, given.leading_dimension);
    }
    if (problem.batches > 1) {
        found.compare(fmt::format("{}'s batch stride", name), planned.batch_stride, given.batch_stride);
    }
    if (problem.outer_batches > 1) {
        found.compare(fmt::format("{}'s outer stride", name), planned.outer_stride, given.outer_stride);
    }
}

std::string extents_of(const GemmProblem& problem)
{
    return fmt::format("{}x{}x{} (MxNxK)", problem.m, problem.n, problem.k);
}

std::string_view bias_of(const GemmProblem& problem)
{
    switch (problem.bias) {
        case BiasAxis::none: return "none";
        case BiasAxis::per_row: return "per row";
        case BiasAxis::per_column: return "per column";
    }
    return "unknown";
}

}  // namespace

bool serves(const GemmProblem& planned, const KernelChoice& choice, const GemmProblem& given,
            const DeviceProperties& device)
{
    const bool same = planned.m == given.m && planned.n == given.n && planned.k == given.k &&
                      planned.batches == given.batches && planned.outer_batches == given.outer_batches &&
                      planned.input == given.input && planned.output == given.output &&
                      has_layout(planned.a, given.a, planned) && has_layout(planned.b, given.b, planned) &&
                      has_layout(planned.d, given.d, planned) && planned.has_c == given.has_c &&
                      planned.bias == given.bias && planned.activation == given.activation &&
                      planned.has_pre_activation == given.has_pre_activation && planned.gating == given.gating &&
                      planned.row_scales == given.row_scales && planned.column_scales == given.column_scales &&
                      (!is_float8(planned.input) || planned.fp8_accumulation == given.fp8_accumulation) &&
                      allows_f16_sums(planned) == allows_f16_sums(given) && has_levels(planned, given);
    const bool aligned = is_aligned_as(planned.a, given.a) && is_aligned_as(planned.b, given.b);
    return same && (aligned || runs(planned, choice, given, device));
}

std::string differences(const GemmProblem& planned, const KernelChoice& choice, const GemmProblem& given)
{
    Differences found;
    found.compare("the product", extents_of(planned), extents_of(given));
    found.compare("the number of batches", planned.batches, given.batches);
    found.compare("the outer number of batches", planned.outer_batches, given.outer_batches);
    found.compare("A's type", to_string(planned.input.a), to_string(given.input.a));
    found.compare("B's type", to_string(planned.input.b), to_string(given.input.b));
    found.compare("D's type", to_string(planned.output), to_string(given.output));
    // Without gaps, leading dimensions and strides follow from the extents, so it is enough to name those.
    if (extents_of(planned) == extents_of(given) && planned.batches == given.batches &&
        planned.outer_batches == given.outer_batches) {
        compare_layouts(found, 'A', planned.a, given.a, planned);
        compare_layouts(found, 'B', planned.b, given.b, planned);
        compare_layouts(found, 'D', planned.d, given.d, planned);
    }
    if (planned.has_c != given.has_c) {
        found.add("{}", given.has_c ? "there is a C, but the plan was prepared without one: set problem.has_c"
                                    : "there is no C, but the plan was prepared for one");
    }
    found.compare("the bias", bias_of(planned), bias_of(given));
    found.compare("the activation", to_string(planned.activation), to_string(given.activation));
    if (planned.has_pre_activation != given.has_pre_activation) {
        found.add("{}", given.has_pre_activation
                            ? "there is a pre-activation, but the plan was prepared without one: set "
                              "problem.has_pre_activation"
                            : "there is no pre-activation, but the plan was prepared for one");
    }
    found.compare("the gating", to_string(planned.gating), to_string(given.gating));
    const auto compare_scales = [&](char name, std::string_view line, std::string_view fact, bool one, bool other) {
        if (one != other) {
            found.add("{} has {} scale for each {}, but the plan was prepared {}: {} problem.{}", name,
                      other ? "a" : "no", line, other ? "without" : "with them", other ? "set" : "clear", fact);
        }
    };
    compare_scales('A', "row", "row_scales", planned.row_scales, given.row_scales);
    compare_scales('B', "column", "column_scales", planned.column_scales, given.column_scales);
    if (is_float8(planned.input)) {
        const auto name = [](const GemmProblem& problem) {
            return std::string_view(problem.fp8_accumulation == Fp8Accumulation::fast ? "fast" : "two_level");
        };
        found.compare("the accumulation of 8-bit products", name(planned), name(given));
    }
    const auto sums_of = [](const GemmProblem& problem) {
        return std::string_view(allows_f16_sums(problem) ? "f16" : "f32");
    };
    if (planned.input == given.input) {
        found.compare("the accumulation of f16 products", sums_of(planned), sums_of(given));
    }
    if (!found.text().empty()) {
        return found.text();
    }
    if (!has_levels(planned, given)) {
        GemmProblem without = given;
        without.has_pre_activation = false;
        const bool is_c = !has_levels(planned, without);
        const MatrixLayout& other = is_c ? given.c : given.pre_activation;
        found.add(
            "{} batch stride of {} and outer stride of {} do not fold into one level of batches, but the plan was "
            "prepared for strides that do: set problem.{}",
            is_c ? "C's" : "the pre-activation's", other.batch_stride, other.outer_stride,
            is_c ? "c" : "pre_activation");
        return found.text();
    }
    const auto compare_alignment = [&](char name, const MatrixLayout& one, const MatrixLayout& other) {
        if (!is_aligned_as(one, other)) {
            const std::size_t needed = backend_of(choice.variant).planned_alignment(choice.variant, given.input);
            found.add(
                "{}'s address is {}-byte aligned, but the plan was prepared for {} bytes and its kernel needs {}: "
                "set problem.{}.address_alignment",
                name, other.address_alignment, one.address_alignment, needed, name == 'A' ? 'a' : 'b');
        }
    };
    compare_alignment('A', planned.a, given.a);
    compare_alignment('B', planned.b, given.b);
    return found.text();
}

}  // namespace tessera::detail
