#include "random_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "support/test_main.hpp"

namespace tessera::test {
namespace {

constexpr std::int64_t window_step = 256;  // elements: keeps every alignment that an allocation has
constexpr std::int64_t windows = 64;

/// An extent: aligned for TMA in half of the cases, and empty in a few.
std::int64_t random_extent(Draw& draw, std::int64_t high)
{
    if (draw.one_in(60)) {
        return 0;
    }
    const std::int64_t extent = draw.extent(high);
    return draw.one_in(2) && extent >= 16 ? extent / 16 * 16 : extent;
}

Layout random_layout(Draw& draw, bool is_input)
{
    Layout layout;
    layout.row_major = draw.one_in(2);
    switch (draw.below(4)) {
        case 0: layout.padding = 1 + draw.below(17); break;
        case 1: layout.padding = 16 * (1 + draw.below(4)); break;
        default: break;
    }
    switch (draw.below(6)) {
        case 0: layout.offset = 1 + draw.below(31); break;
        case 1: layout.offset = 16 * (1 + draw.below(2)); break;
        default: break;
    }
    switch (draw.below(3)) {
        case 0: layout.batch_gap = draw.below(40); break;
        case 1: layout.batch_gap = 16 * draw.below(4); break;
        default: break;
    }
    layout.shared = is_input && draw.one_in(5);
    return layout;
}

void draw_epilogue(Draw& draw, GemmCase& gemm)
{
    gemm.alpha = draw.pick(std::array{1.0F, 1.0F, 1.0F, 0.5F, -1.25F, 2.0F, 0.0F});
    if (draw.one_in(4)) {
        gemm.scale_a = draw.pick(std::array{0.5F, 2.0F, 0.25F});
    }
    if (draw.one_in(4)) {
        gemm.scale_b = draw.pick(std::array{0.5F, 2.0F, 0.25F});
    }
    switch (draw.below(5)) {
        case 0: gemm.addend = Addend::in_place; break;
        case 1: gemm.addend = Addend::separate; break;
        default: break;
    }
    if (gemm.addend != Addend::none) {
        gemm.beta = draw.pick(std::array{1.0F, 1.0F, -0.5F, 0.75F, 0.0F});
        gemm.c = random_layout(draw, true);
    }
    gemm.bias = draw.pick(std::array{BiasAxis::none, BiasAxis::none, BiasAxis::per_row, BiasAxis::per_column});
    gemm.bias_type = draw.pick(addend_types);
    gemm.bias_offset = draw.one_in(2) ? 0 : draw.below(8);
    gemm.activation = draw.one_in(2) ? Activation::none : draw.pick(all_activations);
    if (is_float8(gemm.output)) {
        if (gemm.addend == Addend::in_place) {  // C has another type
            gemm.addend = Addend::separate;
        }
        if (draw.one_in(2)) {
            gemm.scale_d = draw.pick(std::array{0.25F, 3.0F, -100.0F});
        }
    }
    if (draw.one_in(6)) {
        gemm.pre_activation = random_layout(draw, false);
        gemm.pre_activation->row_major = gemm.d.row_major;
    }
    if (draw.one_in(8)) {  // pairs have neither a C nor a pre-activation
        gemm.gating = draw.pick(std::array{Gating::interleaved, Gating::side_by_side});
        gemm.n -= gemm.n % 2;
        gemm.addend = Addend::none;
        gemm.beta = 0;
        gemm.pre_activation.reset();
    }
}

GemmCase random_case(Draw& draw, const ProductLimits& limits)
{
    GemmCase gemm;
    do {
        gemm.m = random_extent(draw, 4096);
        gemm.n = random_extent(draw, 4096);
        gemm.k = random_extent(draw, 1 << 16);
        gemm.batches = draw.one_in(4) ? 1 + draw.extent(30) : 1;
    } while (gemm.m * gemm.n * gemm.k * gemm.batches > limits.multiply_adds);
    gemm.input = draw.pick(input_types);
    gemm.output = draw.pick(output_types);
    gemm.a = random_layout(draw, true);
    gemm.b = random_layout(draw, true);
    gemm.d = random_layout(draw, false);
    if (is_float8(gemm.input) && draw.one_in(2)) {
        gemm.fp8_accumulation = Fp8Accumulation::fast;
        gemm.k = std::min<std::int64_t>(gemm.k, 1024);  // a longer sum has a bound that means nothing
    }
    if (gemm.input == InputTypes(ElementType::f16) && draw.one_in(3)) {
        gemm.f16_accumulation = F16Accumulation::in_f16;
    }
    draw_epilogue(draw, gemm);
    return gemm;
}

}  // namespace

std::int64_t ProductLimits::elements() const { return std::max<std::int64_t>(multiply_adds / 16, 4096); }
std::int64_t ProductLimits::pool() const { return elements() + (windows + 1) * window_step; }

std::int64_t Draw::below(std::int64_t count)
{
    return static_cast<std::int64_t>(hash(seed_, index_, drawn_++) % static_cast<std::uint64_t>(count));
}

std::int64_t Draw::extent(std::int64_t high)
{
    std::int64_t octaves = 0;
    while (std::int64_t{1} << (octaves + 1) <= high) {
        ++octaves;
    }
    const std::int64_t low = std::int64_t{1} << below(octaves + 1);
    return std::min(low + below(low), high);
}

RandomProduct random_product(std::uint64_t seed, std::uint64_t index, const ProductLimits& limits)
{
    Draw draw(seed, index);
    RandomProduct product;
    const auto window = [&] { return window_step * draw.below(windows); };
    const auto fits = [&](const Placement& placement) { return placement.span() <= limits.elements(); };
    do {
        GemmCase& gemm = product.gemm;
        gemm = random_case(draw, limits);
        product.a = place(gemm.a, gemm.m, gemm.k, gemm.batches, window());
        product.b = place(gemm.b, gemm.k, gemm.n, gemm.batches, window());
        product.d = place(gemm.d, gemm.m, gemm.d_columns(), gemm.batches, guard_elements);
        product.pre_activation = Placement{};
        if (gemm.pre_activation) {
            product.pre_activation = place(*gemm.pre_activation, gemm.m, gemm.n, gemm.batches, guard_elements);
        }
        Layout of_c = gemm.c;
        if (gemm.addend == Addend::in_place) {
            of_c = {};  // the source of D's values, without gaps
        }
        product.c = gemm.addend == Addend::none ? Placement{} : place(of_c, gemm.m, gemm.n, gemm.batches, window());
    } while (!fits(product.a) || !fits(product.b) || !fits(product.c) || !fits(product.d) ||
             !fits(product.pre_activation) ||
             product.gemm.m * product.gemm.n * product.gemm.batches > limits.elements());  // sums, also of pairs
    product.bias_first = window() + product.gemm.bias_offset;
    product.counts_shared = draw.one_in(2);
    product.workspace = draw.pick(
        std::array{WorkspaceKind::library, WorkspaceKind::library, WorkspaceKind::none, WorkspaceKind::callers});
    product.workspace_bytes = 256 * draw.below(1 << 16);
    return product;
}

std::string RandomProduct::describe() const
{
    std::string text = gemm.describe();
    if (gemm.batches > 1) {
        text += fmt::format(", batch gaps {} {} {}", gemm.a.batch_gap, gemm.b.batch_gap, gemm.d.batch_gap);
    }
    switch (workspace) {
        case WorkspaceKind::library: break;
        case WorkspaceKind::none: text += ", no workspace"; break;
        case WorkspaceKind::callers:
            text += fmt::format(", the caller's workspace of {} bytes", workspace_bytes);
            break;
    }
    return text;
}

}  // namespace tessera::test
