/// The mma.sync kernel: every configuration that runs on the device, with every pair of types, orders, alignments,
/// epilogues and split, at ragged shapes. Runs on any device of compute capability 7.5 or later, or an emulated one.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <optional>
#include <set>
#include <source_location>
#include <string_view>
#include <vector>

#include "gemm/gemm_operands.hpp"
#include "gemm/mma/mma_launch.hpp"
#include "support/gemm_runner.hpp"
#include "support/mma_cases.hpp"
#include "support/pair_covering.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

std::set<int> configs_of(const GemmCase& gemm)
{
    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
    const DeviceOperands operands(stream(), gemm, data);
    std::set<int> configs;
    for (const KernelChoice& choice : choices_for(detail::resolved(operands.problem()))) {
        configs.insert(choice.config);
    }
    return configs;
}

}  // namespace

TEST_CASE("every configuration is right for every pair of types, orders, layouts and epilogues, at ragged shapes")
{
    const std::vector<InputTypes> inputs = inputs_here();
    if (inputs.empty()) {
        return;
    }
    std::mt19937_64 engine = random_engine(1);
    const std::vector<std::int64_t> extents{1, 15, 16, 17, 72, 129, 264};
    const std::vector<std::int64_t> depths{0, 1, 31, 64, 65, 200, 1160};
    const std::vector<std::int64_t> paddings{0, 1, 4, 8, 16};
    const std::vector<std::int64_t> offsets{0, 0, 1, 4, 8};
    const std::vector<ElementType> outputs(output_types.begin(), output_types.end());
    const std::vector<ElementType> addends(addend_types.begin(), addend_types.end());
    const std::vector<Addend> sources{Addend::none, Addend::separate, Addend::in_place};
    const std::vector<BiasAxis> axes{BiasAxis::none, BiasAxis::per_row, BiasAxis::per_column};
    const std::vector<Activation> activations{Activation::none, Activation::relu, Activation::gelu_tanh,
                                              Activation::silu};
    const std::vector<float> alphas{1.0F, -2.0F, 0.0F};
    const auto count = [](const auto& levels) { return static_cast<int>(levels.size()); };
    const std::vector<int> levels{count(extents),
                                  count(extents),
                                  count(depths),
                                  count(inputs),
                                  count(outputs),
                                  count(addends),
                                  2,
                                  2,
                                  2,
                                  2,
                                  count(paddings),
                                  count(paddings),
                                  count(paddings),
                                  count(offsets),
                                  count(offsets),
                                  count(offsets),
                                  count(sources),
                                  count(axes),
                                  count(activations),
                                  3,
                                  2,
                                  2,
                                  count(alphas),
                                  2,
                                  4,
                                  2};
    const std::vector<Combination> combinations = pair_covering(levels, engine);
    std::size_t number = 0;
    std::size_t launches = 0;
    for (const Combination& combination : combinations) {
        if (quick() && ++number % 11 != 0) {  // the device's runs have different seeds
            continue;
        }
        std::size_t next = 0;
        const auto take = [&](const auto& values) { return values[static_cast<std::size_t>(combination[next++])]; };
        const auto take_flag = [&] { return combination[next++] != 0; };
        GemmCase gemm;
        gemm.m = take(extents);
        gemm.n = take(extents);
        gemm.k = take(depths);
        gemm.input = take(inputs);
        gemm.output = take(outputs);
        gemm.bias_type = take(addends);
        for (Layout* layout : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
            layout->row_major = take_flag();
        }
        for (Layout* layout : {&gemm.a, &gemm.b, &gemm.d}) {
            layout->padding = take(paddings);
        }
        for (Layout* layout : {&gemm.a, &gemm.b, &gemm.d}) {
            layout->offset = take(offsets);
        }
        gemm.addend = take(sources);
        gemm.beta = gemm.addend == Addend::none ? 0.0F : -0.5F;
        if (gemm.addend == Addend::in_place && is_float8(gemm.output)) {
            gemm.addend = Addend::separate;
        }
        gemm.bias = take(axes);
        gemm.activation = take(activations);
        gemm.batches = 1 + combination[next++] % 3;
        const bool is_coarse = take_flag();
        gemm.fp8_accumulation = is_coarse ? Fp8Accumulation::fast : Fp8Accumulation::two_level;
        gemm.f16_accumulation = is_coarse ? F16Accumulation::in_f16 : F16Accumulation::in_f32;
        if (take_flag()) {
            gemm.pre_activation = Layout{};
        }
        gemm.alpha = take(alphas);
        if (take_flag()) {
            gemm.scale_a = 0.5F;
            gemm.row_scales = true;
        }
        // Most configurations need operands of whole chunks.
        if (combination[next++] > 0) {
            align_operands(gemm);
        }
        gemm.data = take_flag() && gemm.output == ElementType::f32 ? Data::signature : Data::random;
        const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
        const Reference reference(gemm, data);
        const DeviceOperands operands(stream(), gemm, data);
        const GemmProblem problem = detail::resolved(operands.problem());
        for (const KernelChoice& choice : choices_for(problem)) {
            check(gemm, data, reference, choice);
            ++launches;
        }
        if (quick() && launches % 4 != 0) {
            continue;
        }
        // And on one configuration with stream-K, if the problem is deep enough.
        const DeviceProperties few = with_few_sms(2 + static_cast<int>(engine() % 4));
        std::vector<KernelChoice> divided = choices_for(problem, few);
        std::erase_if(divided, [](const KernelChoice& choice) { return !choice.stream_k; });
        if (!divided.empty()) {
            check(gemm, data, reference, divided[engine() % divided.size()], few);
            ++launches;
        }
    }
    MESSAGE(combinations.size() << " problems, " << launches << " checks");
    CHECK(launches > combinations.size() / (quick() ? 24 : 4));
}

TEST_CASE("an epilogue that moves vectors is right for all types of D, C and bias, inside of tiles and at their edges")
{
    const std::vector<InputTypes> inputs = inputs_here();
    if (inputs.empty()) {
        return;
    }
    std::size_t number = 0;
    std::size_t skipped = seed();  // other combinations for other seeds
    for (const ElementType output : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
        for (const ElementType addend : addend_types) {
            for (const Addend source : {Addend::none, Addend::separate, Addend::in_place}) {
                if (quick() && ++skipped % 3 != 0) {
                    continue;
                }
                GemmCase gemm;
                gemm.m = 70;
                gemm.n = 136;
                gemm.k = 72;
                gemm.input = inputs[number % inputs.size()];
                gemm.output = output;
                gemm.bias_type = addend;
                gemm.addend = source;
                gemm.beta = source == Addend::none ? 0.0F : -0.5F;
                gemm.bias = number % 2 == 0 ? BiasAxis::per_column : BiasAxis::none;
                gemm.activation = number % 3 == 0 ? Activation::gelu_tanh : Activation::none;
                gemm.batches = 1 + static_cast<std::int64_t>(number % 2);
                gemm.b.row_major = false;
                ++number;
                const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
                const Reference reference(gemm, data);
                const DeviceOperands operands(stream(), gemm, data);
                for (const KernelChoice& choice : choices_for(detail::resolved(operands.problem()))) {
                    check(gemm, data, reference, choice);
                }
            }
        }
    }
}

TEST_CASE("every configuration of every pair of types has a candidate, so that the tests reach it")
{
    for (const InputTypes input : inputs_here()) {
        std::vector<bool> found(kernels::mma_kernels(input).size(), false);
        for (const bool k_major : {true, false}) {
            for (const F16Accumulation sums : {F16Accumulation::in_f32, F16Accumulation::in_f16}) {
                const GemmProblem problem = detail::resolved({.m = 272,
                                                              .n = 272,
                                                              .k = 1168,
                                                              .input = input,
                                                              .output = ElementType::f32,
                                                              .a = {.row_major = k_major},
                                                              .b = {.row_major = !k_major},
                                                              .f16_accumulation = sums});
                detail::for_each_mma_candidate(problem, device(),
                                               [&](const KernelChoice& choice) { found[choice.config] = true; });
            }
        }
        for (std::size_t config = 0; config < found.size(); ++config) {
            const kernels::MmaKernel& kernel = kernels::mma_kernels(input)[config];
            const bool fits =
                2 * static_cast<std::size_t>(kernel.config->stage_bytes()) <= device().shared_memory_per_block_bytes;
            CHECK_MESSAGE(found[config] == (fits && (device().compute_capability() >= 80 ? kernel.config->for_80
                                                                                         : kernel.config->for_75)),
                          kernel.name);
        }
    }
}

TEST_CASE(
    "stream-K is right on every configuration, with whole tiles before the divided ones or without, in equal parts or "
    "not")
{
    std::size_t number = seed();
    std::size_t type = seed();
    for (const InputTypes input : inputs_here()) {
        std::vector<bool> found(kernels::mma_kernels(input).size(), false);
        ++type;
        for (const std::int64_t m : {std::int64_t{150}, std::int64_t{330}}) {
            if (quick() && (m == 150) != (type % 2 == 0)) {  // the device's runs have different seeds
                continue;
            }
            GemmCase gemm;
            gemm.m = m;
            gemm.n = 136;
            gemm.k = (m == 150 ? 24 : 17) * 128 / static_cast<std::int64_t>(size_of(input)) + 16;
            gemm.input = input;
            gemm.b.row_major = false;
            gemm.d.row_major = ++number % 2 == 0;
            gemm.batches = 1 + static_cast<std::int64_t>(number % 2);
            gemm.f16_accumulation = F16Accumulation::in_f16;
            gemm.addend = Addend::separate;
            gemm.beta = -0.5F;
            align_operands(gemm);
            const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
            const Reference reference(gemm, data);
            const DeviceOperands operands(stream(), gemm, data);
            const GemmProblem problem = detail::resolved(operands.problem());
            for (const int sms : {3, 7, 22}) {
                const DeviceProperties few = with_few_sms(sms);
                detail::for_each_mma_candidate(problem, few, [&](const KernelChoice& choice) {
                    if (!choice.stream_k || (found[choice.config] && (quick() || choice.cluster_k % 2 != 0))) {
                        return;
                    }
                    if (quick() && (choice.config + number) % 6 != 0) {  // another sixth for each type
                        return;
                    }
                    found[choice.config] = true;
                    check(gemm, data, reference, choice, few);
                });
            }
            // What no model proposes: all tiles are divided, in more parts than the room suggests.
            KernelChoice choice = detail::choose_mma(problem, device(), 0);
            choice.stream_k = true;
            choice.cluster_k = 5;
            choice.clusters = 3;
            REQUIRE(detail::is_mma_choice_valid(problem, device(), choice));
            check(gemm, data, reference, choice, with_few_sms(1));
            check(gemm, data, reference, choice, with_few_sms(13));
        }
        if (quick()) {
            continue;
        }
        for (std::size_t config = 0; config < found.size(); ++config) {
            KernelChoice whole{.variant = Variant::mma_sync, .config = static_cast<std::uint8_t>(config), .band = 1};
            const GemmProblem any = detail::resolved({.m = 330,
                                                      .n = 136,
                                                      .k = 1024,
                                                      .input = input,
                                                      .output = ElementType::f32,
                                                      .b = {.row_major = false},
                                                      .f16_accumulation = F16Accumulation::in_f16});
            const bool is_offered = !choices_for(any).empty() && detail::is_mma_choice_valid(any, device(), whole);
            CHECK_MESSAGE((found[config] || !is_offered ||
                           (has_f16_sums() && input == ElementType::f16 && !sums_in_f16(input, whole))),
                          kernels::mma_kernels(input)[config].name);
        }
    }
}

TEST_CASE("a captured launch with stream-K is right at each replay, and has the same bits as a launch")
{
    std::size_t type = seed();
    for (const InputTypes input : inputs_here()) {
        if (quick() && ++type % 3 != 0) {  // the device's runs have different seeds
            continue;
        }
        const DeviceProperties few = with_few_sms(5);
        GemmCase gemm;
        gemm.m = 200;
        gemm.n = 328;
        gemm.k = 1160;
        gemm.input = input;
        gemm.b.row_major = false;
        align_operands(gemm);
        const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
        DeviceOperands operands(stream(), gemm, data);
        std::vector<KernelChoice> divided = choices_for(detail::resolved(operands.problem()), few);
        std::erase_if(divided, [](const KernelChoice& choice) { return !choice.stream_k; });
        REQUIRE(!divided.empty());
        const auto enqueue = [&](StreamRef on, const detail::GemmOperands& given, const Epilogue& epilogue) {
            detail::enqueue_gemm(on, given, epilogue, detail::problem_of(given, epilogue), few, divided[0], "mma_test",
                                 std::source_location::current());
        };
        const HostArray launched = operands.launch([&](const auto& given, const Epilogue& epilogue) {
            enqueue(stream(), given, epilogue);
            stream().synchronize();
        });
        const auto wrong = find_wrong_element(gemm, data, launched, summation_of(Variant::mma_sync, gemm));
        if (wrong) {
            report_failure(gemm.size(), gemm.describe(), *wrong);
        }
        for (const int replays : {1, 3}) {
            const HostArray replayed = operands.launch([&](const auto& given, const Epilogue& epilogue) {
                const Graph graph = Graph::capture(stream(), [&](StreamRef captured) {
                    enqueue(captured, given, epilogue);
                    enqueue(captured, given, epilogue);  // reuses what the first one leaves in the workspace
                });
                for (int i = 0; i < replays; ++i) {
                    graph.launch(stream());
                }
                stream().synchronize();
            });
            CHECK(std::ranges::equal(launched.bytes(), replayed.bytes()));
        }
    }
}

TEST_CASE("gated pairs are right on every configuration that the device has for them, in every order and epilogue")
{
    std::mt19937_64 engine = random_engine(2);
    const auto flip = [&] { return engine() % 2 == 0; };
    std::size_t number = 0;
    for (const InputTypes input : inputs_here()) {
        for (const Gating gating : {Gating::interleaved, Gating::side_by_side}) {
            for (const bool row_major : {false, true}) {
                for (const bool is_ragged : {false, true}) {
                    if (quick() && engine() % 4 != 0) {
                        continue;
                    }
                    GemmCase gemm;
                    gemm.m = 70;
                    const auto pairs = 16 * static_cast<std::int64_t>(1 + engine() % 7);
                    gemm.n = 2 * (pairs + (is_ragged ? static_cast<std::int64_t>(1 + engine() % 15) : 0));
                    gemm.k = flip() ? 136 : 648;  // the second one is split, too
                    gemm.input = input;
                    gemm.a.row_major = flip();
                    gemm.b.row_major = row_major;
                    align_operands(gemm);
                    gemm.batches = 1 + static_cast<std::int64_t>(engine() % 2);
                    gemm.b.shared = flip();
                    gemm.output = output_types[number % output_types.size()];
                    gemm.bias_type = addend_types[number % addend_types.size()];
                    gemm.bias = std::array{BiasAxis::per_column, BiasAxis::none, BiasAxis::per_row}[number % 3];
                    gemm.gating = gating;
                    gemm.activation = flip() ? Activation::silu : Activation::gelu_tanh;
                    gemm.d.row_major = engine() % 4 != 0;
                    gemm.d.padding = static_cast<std::int64_t>(engine() % 2);
                    gemm.alpha = 0.75F;
                    if (flip()) {
                        gemm.scale_a = 0.5F;
                        gemm.row_scales = flip();
                    }
                    if (flip()) {
                        gemm.scale_b = 1.5F;
                        gemm.column_scales = flip();
                    }
                    if (is_float8(gemm.output)) {
                        gemm.scale_d = 0.5F;
                    }
                    ++number;
                    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
                    const Reference reference(gemm, data);
                    const DeviceOperands operands(stream(), gemm, data);
                    const std::vector<KernelChoice> choices = choices_for(detail::resolved(operands.problem()));
                    CHECK(!choices.empty());
                    for (const KernelChoice& choice : choices) {
                        check(gemm, data, reference, choice);
                    }
                }
            }
        }
    }
}

TEST_CASE("pairs side by side run on every configuration that takes interleaved ones, if B is column-major")
{
    for (const InputTypes input : inputs_here()) {
        GemmCase gemm;
        gemm.m = 70;
        gemm.n = 130;
        gemm.k = 144;
        gemm.input = input;
        gemm.b.row_major = false;
        gemm.gating = Gating::interleaved;
        const std::set<int> interleaved = configs_of(gemm);
        gemm.gating = Gating::side_by_side;
        CHECK(configs_of(gemm) == interleaved);
        gemm.b.row_major = true;
        CHECK(!configs_of(gemm).empty());
        const DeviceOperands operands(stream(), gemm, GemmData::make(gemm, Guards::both_sides, seed()));
        CHECK(GemmPlan::refusal(operands.problem(), device(), Variant::mma_sync).empty());
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
