/// The Hopper kernels against the float64 reference: every configuration with explicit choices (cluster shapes, cluster
/// split-K, stream-K, the transposed product, raster groups), all types and orders, ragged shapes, every epilogue, and
/// A, B and D that TMA cannot address. Needs a device of compute capability 9.0, or the emulated one.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "gemm/gemm_operands.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "hopper_cases.hpp"
#include "support/choice_runner.hpp"
#include "support/gemm_runner.hpp"
#include "support/hopper_device.hpp"
#include "support/pair_covering.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;
using detail::KernelChoice;
using kernels::HopperKernel;

namespace {

constexpr std::array<std::pair<std::uint8_t, std::uint8_t>, 6> cluster_shapes{
    {{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {1, 4}}};
constexpr std::array<std::uint8_t, 4> layer_counts{1, 2, 4, 8};
constexpr std::array<std::uint8_t, 3> bands{1, 2, 16};

constexpr std::array splits{Split::whole, Split::several_tiles, Split::shared_by_two, Split::shared_by_many,
                            Split::a_stage_of_each};

constexpr std::array outputs{ElementType::f32, ElementType::f16, ElementType::bf16};
constexpr std::array bias_axes{BiasAxis::none, BiasAxis::per_row, BiasAxis::per_column};
constexpr auto activations = all_activations;
constexpr std::array addends{Addend::none, Addend::separate, Addend::in_place};
constexpr std::array<std::int64_t, 3> d_paddings{0, 16, 1};  // elements: TMA accepts 16 of any type, but never 1
constexpr std::array<std::int64_t, 3> d_offsets{0, 16, 1};
constexpr std::array<std::int64_t, 2> input_offsets{0, 16};
constexpr std::array<float, 4> alphas{1, -1, 0.5F, 0};
constexpr std::array<float, 2> betas{1, -0.5F};
constexpr std::array<std::optional<float>, 2> scales{std::nullopt, -2.0F};
constexpr std::array<std::int64_t, 3> batch_counts{1, 2, 3};
constexpr std::array unaligned{Unaligned::lines_of_a,   Unaligned::lines_of_b,   Unaligned::lines_of_both,
                               Unaligned::address_of_a, Unaligned::address_of_b, Unaligned::all,
                               Unaligned::transposed_a, Unaligned::transposed_b};
constexpr std::array accumulations{Fp8Accumulation::two_level, Fp8Accumulation::fast};

std::vector<InputTypes> inputs_of(std::size_t bytes)
{
    std::vector<InputTypes> inputs(input_types.begin(), input_types.end());
    std::erase_if(inputs,
                  [&](InputTypes input) { return size_of(input) != bytes || input == InputTypes(ElementType::f32); });
    return inputs;
}

Stream& stream()
{
    static Stream instance;
    return instance;
}

/// Checks the problem on a choice, which must be valid.
void check(const GemmCase& gemm, const Reference& reference, DeviceOperands& operands, const KernelChoice& choice)
{
    const GemmProblem problem = operands.problem();
    const std::string name =
        fmt::format("{} with {}", gemm.describe(),
                    describe(choice, kernels::hopper_kernels(size_of(problem.input))[choice.config]));
    if (const auto refusal = detail::find_hopper_refusal(problem, device())) {
        report_failure(gemm.size(), name, "refused: " + detail::to_string(*refusal, device()));
        return;
    }
    if (!detail::is_hopper_choice_valid(problem, device(), choice)) {
        report_failure(gemm.size(), name, "the choice is not valid");
        return;
    }
    check_choice(stream(), gemm, reference, operands, name, detail::hopper_workspace(problem, choice),
                 hopper_summation(gemm.input, gemm.fp8_accumulation), Launches::twice,
                 [&](const GemmProblem& launched, const kernels::GemmArguments& arguments,
                     const detail::WorkspaceMemory& memory) {
                     return detail::launch_hopper(stream(), launched, choice, arguments, memory);
                 });
}

void check(GemmCase gemm, const Wanted& wanted)
{
    const HopperKernel& kernel = kernels::hopper_kernels(size_of(gemm.input))[wanted.config];
    if (kernel.tile_n % 64 != 0 && size_of(gemm.input) == 2) {  // no room for a block of an N-major operand
        gemm.a.row_major = true;
        gemm.b.row_major = false;
    }
    if (kernel.two_level_columns == 0) {
        gemm.fp8_accumulation = Fp8Accumulation::fast;
    }
    const bool copied = kernel.copies || wanted.repacks;
    copied ? make_unloadable(gemm, wanted.unaligned) : make_loadable(gemm);
    make_exact(gemm);
    // The fallback load must not read beyond the end.
    const GemmData data = GemmData::make(gemm, copied ? Guards::front_only : Guards::both_sides, seed());
    DeviceOperands operands(stream(), gemm, data);
    check(gemm, Reference(gemm, data), operands, choice_for(operands.problem(), wanted));
}

/// Tests any two values of any two factors, for the configurations of one element size.
void check_pairs(std::size_t bytes)
{
    if (!is_hopper_here()) {
        return;
    }
    const auto table = kernels::hopper_kernels(bytes);
    const std::vector<InputTypes> inputs = inputs_of(bytes);
    constexpr int edges = 6;
    const auto edge_of = [](int edge, int tile) {
        return std::array<std::int64_t, edges>{
            1, tile - 1, tile, tile + 1, tile + 8, 2 * tile + 9}[static_cast<std::size_t>(edge)];
    };
    constexpr int depths = 7;
    const auto depth_of = [](int depth, int block) {
        return std::array<std::int64_t, depths>{
            0, 1, block - 1, block, block + 1, 3 * block + 5, 18 * block - 3}[static_cast<std::size_t>(depth)];
    };
    const auto count = [](const auto& levels) { return static_cast<int>(levels.size()); };
    const std::vector<int> levels{count(table),
                                  count(cluster_shapes),
                                  count(layer_counts),
                                  count(splits),
                                  2,
                                  count(bands),
                                  edges,
                                  edges,
                                  depths,
                                  count(inputs),
                                  count(accumulations),
                                  count(outputs),
                                  count(outputs),
                                  2,
                                  2,
                                  2,
                                  2,
                                  count(d_paddings),
                                  count(d_offsets),
                                  count(d_paddings),
                                  count(input_offsets),
                                  count(input_offsets),
                                  count(alphas),
                                  count(scales),
                                  count(scales),
                                  2,
                                  2,
                                  count(betas),
                                  count(addends),
                                  count(bias_axes),
                                  count(activations),
                                  count(batch_counts),
                                  count(unaligned),
                                  2,
                                  2};
    std::mt19937_64 engine = random_engine(bytes);
    const std::vector<Combination> combinations = pair_covering(levels, engine);
    MESSAGE(combinations.size() << " problems");
    constexpr std::size_t quick_share = 2;
    std::size_t number = 0;
    for (const Combination& combination : combinations) {
        if (quick() && ++number % quick_share != 0) {
            continue;
        }
        std::size_t next = 0;
        const auto take_level = [&] { return combination[next++]; };
        const auto take = [&](const auto& values) { return values[static_cast<std::size_t>(take_level())]; };
        const auto take_flag = [&] { return take_level() != 0; };
        Wanted wanted;
        wanted.config = static_cast<std::size_t>(take_level());
        wanted.cluster = take(cluster_shapes);
        wanted.layers = take(layer_counts);
        wanted.split = take(splits);
        wanted.swapped = take_flag();
        wanted.band = take(bands);
        const HopperKernel& kernel = table[wanted.config];
        GemmCase gemm;
        gemm.m = edge_of(take_level(), kernel.tile_m);
        gemm.n = edge_of(take_level(), kernel.tile_n);
        gemm.k = depth_of(take_level(), kernel.block_k);
        gemm.input = take(inputs);
        gemm.fp8_accumulation = take(accumulations);
        gemm.output = take(outputs);
        gemm.bias_type = take(outputs);
        for (Layout* layout : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
            layout->row_major = take_flag();
        }
        gemm.d.padding = take(d_paddings);
        gemm.d.offset = take(d_offsets);
        gemm.c.padding = take(d_paddings);
        gemm.a.offset = take(input_offsets);
        gemm.b.offset = take(input_offsets);
        gemm.alpha = take(alphas);
        gemm.scale_a = take(scales);
        gemm.scale_b = take(scales);
        gemm.row_scales = take_flag();
        gemm.column_scales = take_flag();
        gemm.beta = take(betas);
        gemm.addend = take(addends);
        gemm.bias = take(bias_axes);
        gemm.activation = take(activations);
        gemm.batches = take(batch_counts);
        wanted.unaligned = take(unaligned);
        wanted.repacks = take_flag();
        gemm.a.shared = gemm.batches == 3;
        gemm.b.batch_gap = 16;
        gemm.data = take_flag() ? Data::signature : Data::random;
        if (wanted.swapped != !gemm.d.row_major) {  // the kernel's tile is transposed
            gemm.m = edge_of(combination[7], kernel.tile_n);
            gemm.n = edge_of(combination[6], kernel.tile_m);
        }
        check(gemm, wanted);
    }
}

/// A case for one launch through the public interface.
GemmCase public_case(InputTypes input)
{
    GemmCase gemm;
    gemm.m = 200;
    gemm.n = 136;
    gemm.k = 96;
    gemm.input = input;
    gemm.b.row_major = false;
    gemm.output = ElementType::bf16;
    gemm.bias = BiasAxis::per_column;
    gemm.activation = Activation::gelu;
    make_loadable(gemm);
    make_exact(gemm);
    return gemm;
}

}  // namespace

TEST_CASE("16-bit configurations are right in every pair of cluster, split, order, shape and epilogue")
{
    check_pairs(2);
}

TEST_CASE("8-bit configurations are right in every pair of cluster, split, types, shape and epilogue")
{
    check_pairs(1);
}

TEST_CASE("tf32 configurations are right in every pair of cluster, split, shape and epilogue") { check_pairs(4); }

TEST_CASE("every configuration is right for every pair of types and every order")
{
    if (!is_hopper_here()) {
        return;
    }
    unsigned turn = 0;
    for (const InputTypes input : input_types) {
        if (input == InputTypes(ElementType::f32)) {
            continue;
        }
        const auto table = kernels::hopper_kernels(size_of(input));
        for (std::size_t config = 0; config < table.size(); ++config) {
            // Orders of A and B are as requested if the kernel supports them; D's always is.
            for (unsigned orders = 0; orders < 8; ++orders) {
                if (quick() && orders != turn % 8) {
                    continue;
                }
                GemmCase gemm;
                gemm.m = table[config].tile_m + 8;
                gemm.n = table[config].tile_n - 8;
                gemm.k = table[config].block_k + 40;
                gemm.input = input;
                gemm.a.row_major = (orders & 1U) != 0;
                gemm.b.row_major = (orders & 2U) != 0;
                gemm.d.row_major = (orders & 4U) != 0;
                gemm.output = outputs[turn % outputs.size()];
                gemm.data = gemm.k <= longest_exact_k ? Data::signature : Data::random;
                check(gemm, {.config = config});
                if (!table[config].copies) {
                    check(gemm, {.config = config, .unaligned = unaligned[turn % unaligned.size()], .repacks = true});
                }
            }
            ++turn;
        }
    }
}

TEST_CASE("C stays in step with the stages that a cluster shares")
{
    if (!is_hopper_here()) {
        return;
    }
    const auto table = kernels::hopper_kernels(2);
    for (std::size_t config = 0; config < table.size(); ++config) {
        if (!table[config].carries_c || (quick() && config % 4 > 1)) {
            continue;
        }
        GemmCase gemm;
        gemm.m = std::int64_t{table[config].tile_m} * 2;
        gemm.n = std::int64_t{table[config].tile_n} * 2;
        gemm.k = 8;         // one stage: most slots hold C
        gemm.batches = 16;  // tiles of the one cluster
        gemm.input = ElementType::bf16;
        gemm.output = ElementType::bf16;
        gemm.addend = Addend::in_place;
        gemm.beta = 1;
        check(gemm, {.config = config, .cluster = {2, 2}, .split = Split::all_tiles});
    }
}

TEST_CASE("in ping-pong, a stage does not take the place of a C that arrives late")
{
    if (!is_hopper_here()) {
        return;
    }
    const auto table = kernels::hopper_kernels(2);
    for (std::size_t config = 0; config < table.size(); ++config) {
        if (!table[config].carries_c || !table[config].ping_pong) {
            continue;
        }
        GemmCase gemm;
        gemm.m = table[config].tile_m;
        gemm.n = table[config].tile_n;
        gemm.k = std::int64_t{table[config].stages} * table[config].block_k;  // a tile goes once around the ring
        gemm.batches = 8;                                                     // tiles of the one CTA
        gemm.input = ElementType::bf16;
        gemm.output = ElementType::bf16;
        gemm.addend = Addend::in_place;
        gemm.beta = 1;
        check(gemm, {.config = config, .cluster = {1, 1}, .split = Split::all_tiles});
    }
}

TEST_CASE("two-level accumulation keeps the bits that the tensor core's accumulator loses")
{
    if (!is_hopper_here()) {
        return;
    }
    for (const InputTypes input : inputs_of(1)) {
        const auto table = kernels::hopper_kernels(1);
        for (std::size_t config = 0; config < table.size(); ++config) {
            for (const Fp8Accumulation accumulation : accumulations) {
                GemmCase gemm;
                gemm.m = 70;
                gemm.n = 40;
                gemm.k = 1024;  // losing 1023 of the sum exceeds the bound, losing the first level's 127 does not
                gemm.input = input;
                gemm.data = Data::one_large;
                gemm.fp8_accumulation = accumulation;
                if (!quick() || input == InputTypes(ElementType::f8e4m3)) {
                    check(gemm, {.config = config});
                }
            }
        }
    }
}

TEST_CASE("every tile has the same bits in two-level accumulation")
{
    if (!is_hopper_here()) {
        return;
    }
    const auto table = kernels::hopper_kernels(1);
    for (const InputTypes input : inputs_of(1)) {
        if (quick() && input != InputTypes(ElementType::f8e4m3)) {
            continue;
        }
        GemmCase gemm;
        gemm.m = 200;
        gemm.n = 532;
        gemm.k = 1040;
        gemm.input = input;
        gemm.output = ElementType::f32;
        gemm.data = Data::random;
        make_loadable(gemm);
        const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
        DeviceOperands operands(stream(), gemm, data);
        const Reference reference(gemm, data);
        std::optional<HostArray> first;
        for (std::size_t config = 0; config < table.size(); ++config) {
            if (table[config].two_level_columns == 0 || table[config].copies) {  // which refuses what TMA can load
                continue;
            }
            const KernelChoice choice =
                choice_for(operands.problem(), {.config = config, .split = Split::several_tiles});
            check(gemm, reference, operands, choice);
            const HostArray result = operands.download();
            if (!first) {
                first = result;
            }
            INFO(describe(choice, table[config]));
            CHECK(result.bytes() == first->bytes());
        }
    }
}

TEST_CASE("random samples of the tuner's candidates are right")
{
    if (!is_hopper_here()) {
        return;
    }
    std::mt19937_64 engine = random_engine(5);
    const auto up_to = [&](std::int64_t largest) {
        return 1 + static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(largest));
    };
    for (const std::size_t bytes : {std::size_t{2}, std::size_t{1}, std::size_t{4}}) {
        const std::vector<InputTypes> inputs = inputs_of(bytes);
        for (int problem = 0; problem < (quick() ? 1 : 8); ++problem) {
            GemmCase gemm;
            gemm.m = up_to(quick() ? 150 : 1500);
            gemm.n = up_to(quick() ? 150 : 1500);
            gemm.k = up_to(static_cast<std::int64_t>((quick() ? 1000 : 8000) / bytes));
            gemm.input = inputs[engine() % inputs.size()];
            gemm.output = outputs[engine() % outputs.size()];
            gemm.a.row_major = engine() % 2 == 0;
            gemm.b.row_major = engine() % 2 == 0;
            gemm.d.row_major = engine() % 2 == 0;
            problem % 2 != 0 ? make_unloadable(gemm, Unaligned::lines_of_a) : make_loadable(gemm);
            make_exact(gemm);
            const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
            const Reference reference(gemm, data);
            DeviceOperands operands(stream(), gemm, data);
            std::vector<KernelChoice> candidates = detail::hopper_candidates(operands.problem(), device());
            CHECK_FALSE(candidates.empty());
            std::shuffle(candidates.begin(), candidates.end(), engine);
            candidates.resize(std::min<std::size_t>(candidates.size(), quick() ? 2 : 25));
            for (const KernelChoice& choice : candidates) {
                check(gemm, reference, operands, choice);
            }
        }
    }
}

TEST_CASE("Gemm::launch and plans use the Hopper kernels")
{
    if (!is_hopper_here()) {
        return;
    }
    for (const InputTypes input : input_types) {
        if (input == InputTypes(ElementType::f32)) {
            continue;
        }
        for (const bool aligned : {true, false}) {
            GemmCase gemm = public_case(input);
            if (!aligned) {
                gemm.a.row_major = false;
                gemm.a.padding += 1;
                gemm.b.offset = 1;
            }
            const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
            DeviceOperands operands(stream(), gemm, data);
            CHECK(GemmPlan::prepare(Device::current(), operands.problem()).variant() == Variant::hopper);
            const HostArray result = operands.launch(Variant::hopper);
            if (const auto wrong = find_wrong_element(gemm, data, result, summation_of(Variant::hopper, gemm))) {
                report_failure(gemm.size(), gemm.describe(), *wrong);
            }
            CHECK(operands.launch(Variant::automatic).bytes() == result.bytes());
            CHECK(operands.launch_plan(Variant::automatic).bytes() == result.bytes());
        }
    }
    for (const bool rows : {true, false}) {  // an empty D, with a K that could be divided
        GemmCase gemm = public_case(ElementType::f16);
        (rows ? gemm.m : gemm.n) = 0;
        gemm.k = 8192;
        const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
        DeviceOperands operands(stream(), gemm, data);
        CHECK(operands.launch(Variant::hopper).bytes() == data.d.bytes());
    }
}

TEST_CASE("f32 inputs are refused, and D is not written")
{
    if (!is_hopper_here()) {
        return;
    }
    const GemmCase gemm = public_case(ElementType::f32);
    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
    DeviceOperands operands(stream(), gemm, data);
    try {
        operands.launch(Variant::hopper);
        report_failure(gemm.size(), gemm.describe(), "was not refused");
    } catch (const Error& error) {
        CHECK(error.code() == ErrorCode::variant_refused);
        CHECK_MESSAGE(std::string(error.what()).find("f32") != std::string::npos, error.what());
        CHECK(operands.download().bytes() == data.d.bytes());
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
