/// Every variant of Gemm::launch against the float64 reference: shapes around the tile edges, types, orders, layouts
/// and epilogues. Needs a device.

#include <doctest/doctest.h>

#include <array>
#include <set>
#include <span>

#include "kernels/simt/simt_kernels.hpp"
#include "support/gemm_runner.hpp"
#include "support/pair_covering.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

constexpr std::array bias_axes{BiasAxis::none, BiasAxis::per_row, BiasAxis::per_column};
constexpr auto activations = all_activations;
constexpr std::array addends{Addend::none, Addend::separate, Addend::in_place};
constexpr std::array<std::int64_t, 4> paddings{0, 1, 4, 8};
constexpr std::array<std::int64_t, 3> offsets{0, 1, 4};
constexpr std::array<float, 4> alphas{1, 0, -1, 0.5F};
constexpr std::array<float, 4> betas{1, 0, -1, 0.5F};
constexpr std::array<std::optional<float>, 3> scales{std::nullopt, 0.5F, -2.0F};

constexpr std::array<std::optional<Layout>, 3> pre_activations{std::nullopt, Layout{},
                                                               Layout{.padding = 3, .offset = 1, .batch_gap = 2}};

constexpr std::array<std::optional<float>, 3> scales_of_d{std::nullopt, 0x1p-7F, -4.0F};
/// The largest magnitude before the launch: none wanted, raised by every product, by most, by none.
constexpr std::array<std::optional<float>, 4> maxima{std::nullopt, 0.0F, 0.5F, 1e30F};

enum class Batching : std::uint8_t { one, two, three_share_a, two_share_b, fill_large, fill_medium };
constexpr std::array batchings{Batching::one,         Batching::two,        Batching::three_share_a,
                               Batching::two_share_b, Batching::fill_large, Batching::fill_medium};

kernels::SimtKernel kernel_with(kernels::SimtTile tile)
{
    return kernels::simt_kernel(kernels::SimtRung::register_blocked, ElementType::f32, tile);
}

/// 0, 1, and tile - 1, tile, tile + 1 for each tile of each kernel.
std::vector<std::int64_t> edges_of(int kernels::SimtKernel::*tile)
{
    using kernels::SimtRung;
    using kernels::SimtTile;
    std::set<std::int64_t> edges{0, 1};
    for (const InputTypes type : input_types) {
        for (const SimtRung rung : {SimtRung::naive, SimtRung::tiled, SimtRung::vectorized, SimtRung::coarsened,
                                    SimtRung::register_blocked}) {
            for (const SimtTile size : {SimtTile::large, SimtTile::medium, SimtTile::small}) {
                for (const std::int64_t edge : {-1, 0, 1}) {
                    edges.insert(kernels::simt_kernel(rung, type, size).*tile + edge);
                }
            }
        }
    }
    return {edges.begin(), edges.end()};
}

/// Returns a number of matrices with which the library chooses `tile` for a row-major D of m x n; any number if it
/// never does.
std::int64_t batches_for(kernels::SimtTile tile, std::int64_t m, std::int64_t n)
{
    const kernels::SimtKernel kernel = kernel_with(tile);
    const auto tiles = [](std::int64_t extent, int block) {
        return std::max<std::int64_t>(1, (extent + block - 1) / block);
    };
    const std::int64_t per_matrix = tiles(m, kernel.block_m) * tiles(n, kernel.block_n);
    const int multiprocessors = Device::current().properties().sm_count;
    std::int64_t batches = 1;
    while (kernels::choose_simt_tile(m, n, batches, multiprocessors) != tile) {
        if (++batches > 64 * multiprocessors / per_matrix + 64) {
            return batches;
        }
    }
    return batches;
}

/// Scales the output into the range of f16, by a power of two so that exact data stay exact.
void keep_in_range(GemmCase& gemm)
{
    if (gemm.output == ElementType::f16 && gemm.data == Data::signature) {
        gemm.alpha *= 0x1p-9F;
    }
}

/// Leaves out what a D of this type cannot have.
void fit_to_output(GemmCase& gemm)
{
    if (!is_float8(gemm.output)) {
        gemm.scale_d = gemm.amax_d = std::nullopt;
    } else if (gemm.addend == Addend::in_place) {  // C has another type
        gemm.addend = Addend::separate;
    }
}

/// Repeats the product until the library chooses `tile`.
void fill_device(GemmCase& gemm, kernels::SimtTile tile)
{
    // A column-major D is computed as its transpose.
    std::int64_t& m = gemm.d.row_major ? gemm.m : gemm.n;
    std::int64_t& n = gemm.d.row_major ? gemm.n : gemm.m;
    if (quick()) {  // one ragged tile each: small extents would need thousands of products
        m = kernel_with(tile).block_m - 4;
        n = kernel_with(tile).block_n - 8;
    }
    gemm.batches = batches_for(tile, m, n);
    if (quick()) {
        REQUIRE(kernels::choose_simt_tile(m, n, gemm.batches, Device::current().properties().sm_count) == tile);
    }
    gemm.a.shared = gemm.b.shared = gemm.c.shared = true;
}

void set_batching(GemmCase& gemm, Batching batching)
{
    switch (batching) {
        case Batching::one: break;
        case Batching::two:
            gemm.batches = 2;
            gemm.a.batch_gap = 3;
            gemm.d.batch_gap = 5;
            break;
        case Batching::three_share_a:
            gemm.batches = 3;
            gemm.a.shared = true;
            gemm.b.batch_gap = 4;
            break;
        case Batching::two_share_b:
            gemm.batches = 2;
            gemm.b.shared = true;
            gemm.c.batch_gap = 7;
            break;
        case Batching::fill_large: fill_device(gemm, kernels::SimtTile::large); break;
        case Batching::fill_medium: fill_device(gemm, kernels::SimtTile::medium); break;
    }
}

/// Returns all of `values`, or with --quick one of them, another for each `turn`.
template <class T, std::size_t Count>
std::vector<T> all_or_one(const std::array<T, Count>& values, std::size_t turn)
{
    return quick() ? std::vector<T>{values[turn % Count]} : std::vector<T>(values.begin(), values.end());
}

Stream& stream()
{
    static Stream instance;
    return instance;
}

}  // namespace

TEST_CASE("every variant is right for shapes around its tiles, in all layouts, types and epilogues (all pairs)")
{
    std::mt19937_64 engine = random_engine(1);
    const auto block_m = kernel_with(kernels::SimtTile::large).block_m;
    const auto block_n = kernel_with(kernels::SimtTile::large).block_n;
    const auto m_edges =
        quick() ? std::vector<std::int64_t>{1, 65, block_m + 1} : edges_of(&kernels::SimtKernel::block_m);
    const auto n_edges =
        quick() ? std::vector<std::int64_t>{1, 64, block_n + 1} : edges_of(&kernels::SimtKernel::block_n);
    auto k_edges = quick() ? std::vector<std::int64_t>{0, 9, 32, 33} : edges_of(&kernels::SimtKernel::block_k);
    if (!quick()) {
        k_edges.insert(k_edges.end(), {24, 64, 100});  // several steps of every pipeline
    }
    const auto count = [](const auto& levels) { return static_cast<int>(levels.size()); };
    const std::vector<int> levels{count(m_edges),
                                  count(n_edges),
                                  count(k_edges),
                                  count(input_types),
                                  count(output_types),
                                  count(addend_types),
                                  2,
                                  2,
                                  2,
                                  2,
                                  count(paddings),
                                  count(paddings),
                                  count(paddings),
                                  count(paddings),
                                  count(offsets),
                                  count(offsets),
                                  count(offsets),
                                  count(offsets),
                                  count(alphas),
                                  count(scales),
                                  count(scales),
                                  count(scales_of_d),
                                  count(maxima),
                                  2,
                                  2,
                                  count(betas),
                                  count(addends),
                                  count(bias_axes),
                                  2,
                                  count(activations),
                                  3,
                                  2,
                                  count(batchings)};
    const std::vector<Combination> combinations = pair_covering(levels, engine);
    MESSAGE(combinations.size() << " problems");
    for (const Combination& combination : combinations) {
        std::size_t next = 0;
        const auto take = [&](const auto& values) { return values[static_cast<std::size_t>(combination[next++])]; };
        const auto take_flag = [&] { return combination[next++] != 0; };
        GemmCase gemm;
        gemm.m = take(m_edges);
        gemm.n = take(n_edges);
        gemm.k = take(k_edges);
        gemm.input = take(input_types);
        gemm.output = take(output_types);
        gemm.bias_type = take(addend_types);
        for (Layout* layout : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
            layout->row_major = take_flag();
        }
        for (Layout* layout : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
            layout->padding = take(paddings);
        }
        for (Layout* layout : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
            layout->offset = take(offsets);
        }
        gemm.alpha = take(alphas);
        gemm.scale_a = take(scales);
        gemm.scale_b = take(scales);
        gemm.scale_d = take(scales_of_d);
        gemm.amax_d = take(maxima);
        gemm.row_scales = take_flag();
        gemm.column_scales = take_flag();
        gemm.beta = take(betas);
        gemm.addend = take(addends);
        gemm.bias = take(bias_axes);
        gemm.bias_offset = take_flag() ? 1 : 0;
        gemm.activation = take(activations);
        gemm.pre_activation = take(pre_activations);
        gemm.data = take_flag() ? Data::signature : Data::random;
        if (gemm.addend == Addend::none) {
            gemm.beta = 0;
        }
        set_batching(gemm, take(batchings));
        keep_in_range(gemm);
        fit_to_output(gemm);
        check_all_variants(stream(), gemm);
    }
}

TEST_CASE("every variant is right for every combination of types, orders and epilogue")
{
    if (quick()) {
        MESSAGE("skipped by --quick: the previous test covers all pairs of these");
        return;
    }
    std::mt19937_64 engine = random_engine(2);
    const std::array<std::int64_t, 8> extents{1, 7, 16, 17, 31, 33, 64, 65};
    const auto any_extent = [&] { return extents[engine() % extents.size()]; };
    for (const InputTypes input : input_types) {
        for (const ElementType output : output_types) {
            for (unsigned orders = 0; orders < 8; ++orders) {
                for (const BiasAxis bias : bias_axes) {
                    for (const Activation activation : activations) {
                        for (const Addend addend : addends) {
                            GemmCase gemm;
                            gemm.m = any_extent();
                            gemm.n = any_extent();
                            gemm.k = any_extent();
                            gemm.input = input;
                            gemm.output = output;
                            gemm.bias_type = addend_types[engine() % addend_types.size()];
                            gemm.a.row_major = (orders & 1U) != 0;
                            gemm.b.row_major = (orders & 2U) != 0;
                            gemm.d.row_major = (orders & 4U) != 0;
                            gemm.c.row_major = engine() % 2 != 0;
                            gemm.bias = bias;
                            gemm.activation = activation;
                            gemm.addend = addend;
                            gemm.beta = addend == Addend::none ? 0 : 0.75F;
                            gemm.alpha = 1.25F;
                            gemm.scale_d = 16.0F;
                            gemm.amax_d = 0.0F;
                            fit_to_output(gemm);
                            check_all_variants(stream(), gemm);
                        }
                    }
                }
            }
        }
    }
}

TEST_CASE("the error of long sums stays within the bound for K")
{
    for (const InputTypes input : input_types) {
        for (const std::int64_t k : quick() ? std::vector<std::int64_t>{300} : std::vector<std::int64_t>{257, 5000}) {
            GemmCase gemm;
            gemm.m = 65;
            gemm.n = 70;
            gemm.k = k;
            gemm.input = input;
            gemm.output = is_addend(input.a) ? input.a : ElementType::bf16;
            gemm.b.row_major = false;
            check_all_variants(stream(), gemm);
        }
    }
}

TEST_CASE("NaN and infinities of A, B, C and bias appear exactly where the formula says")
{
    std::size_t turn = 0;
    for (const InputTypes input : input_types) {
        for (const Activation activation : all_or_one(activations, turn++)) {
            GemmCase gemm;
            gemm.m = 37;
            gemm.n = 66;
            gemm.k = 5;  // few enough that some sums stay finite
            gemm.input = input;
            gemm.output = is_addend(input.a) ? input.a : ElementType::f32;
            gemm.addend = Addend::separate;
            gemm.beta = 0.5F;
            gemm.bias = BiasAxis::per_column;
            gemm.activation = activation;
            gemm.data = Data::non_finite;
            check_all_variants(stream(), gemm);
        }
    }
}

TEST_CASE("a D of 8 bits saturates and keeps NaN, and its largest magnitude is that before scaling, or NaN")
{
    for (const InputTypes input : {InputTypes(ElementType::f8e4m3), InputTypes(ElementType::bf16)}) {
        for (const ElementType output : {ElementType::f8e4m3, ElementType::f8e5m2}) {
            for (const Data data : {Data::random, Data::non_finite, Data::one_large}) {
                GemmCase gemm;
                gemm.m = 37;
                gemm.n = 80;
                gemm.k = 19;
                gemm.input = input;
                gemm.output = output;
                gemm.b.row_major = false;
                gemm.alpha = -1;
                gemm.bias = BiasAxis::per_column;
                gemm.scale_d = output == ElementType::f8e4m3 ? 120.0F : 15000.0F;
                gemm.amax_d = data == Data::random ? std::optional(0.0F) : std::nullopt;
                gemm.data = data;
                check_all_variants(stream(), gemm);
                gemm.amax_d = 0.0F;
                gemm.batches = 3;
                gemm.activation = Activation::relu;
                check_all_variants(stream(), gemm);
            }
        }
    }
}

TEST_CASE("the SIMT ladder computes one chain of fused multiply-adds in ascending k")
{
    std::size_t turn = 0;
    for (const InputTypes input : input_types) {
        for (const ElementType output : all_or_one(output_types, turn++)) {
            GemmCase gemm;
            gemm.m = 130;
            gemm.n = 71;
            gemm.k = 67;
            gemm.input = input;
            gemm.output = output;
            gemm.a.row_major = output != ElementType::f16;
            gemm.d.row_major = input.a != ElementType::f16 && input.a != ElementType::f8e5m2;
            gemm.alpha = 0.7F;
            gemm.scale_a = 1.7F;
            gemm.scale_b = 0.3F;
            gemm.beta = -1.3F;
            gemm.addend = Addend::in_place;
            gemm.bias = BiasAxis::per_row;
            gemm.activation = Activation::relu;
            gemm.scale_d = 3.7F;
            fit_to_output(gemm);
            const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
            DeviceOperands operands(stream(), gemm, data);
            for (const Variant variant : all_variants()) {
                if (!is_simt(variant) || !takes(variant, gemm, data)) {
                    continue;
                }
                if (const auto wrong = find_other_than_fma_chain(gemm, data, operands.launch(variant))) {
                    report_failure(gemm.size(), gemm.describe(), *wrong);
                }
            }
        }
    }
}

TEST_CASE("one extent may be very large")
{
    const std::int64_t large = quick() ? 5000 : (std::int64_t{1} << 21) + 1;
    for (const bool row_major : {true, false}) {
        for (const bool tall : {true, false}) {
            GemmCase gemm;
            gemm.m = tall ? large : 1;
            gemm.n = tall ? 1 : large;
            gemm.k = 3;
            gemm.a.row_major = gemm.d.row_major = row_major;
            gemm.data = Data::signature;
            check_all_variants(stream(), gemm);
        }
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
