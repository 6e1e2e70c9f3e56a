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

#include "gemm/backend.hpp"
#include "gemm/gemm_operands.hpp"
#include "gemm/mma/mma_launch.hpp"
#include "support/choice_runner.hpp"
#include "support/gemm_runner.hpp"
#include "support/pair_covering.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;
using detail::KernelChoice;

namespace {

Stream& stream()
{
    static Stream instance;
    return instance;
}

const DeviceProperties& device() { return Device::current().properties(); }

/// Every type that the device multiplies by mma.sync.
std::vector<InputTypes> inputs_here()
{
    std::vector<InputTypes> inputs(input_types.begin(), input_types.end());
    std::erase_if(inputs, [](InputTypes input) { return !detail::has_mma_code(input, device()); });
    return inputs;
}

bool sums_in_f16(InputTypes input, const KernelChoice& choice)
{
    return kernels::mma_kernels(input)[choice.config].config->f16_sums;
}

/// The device as if it had few SMs, so that small products have several waves of tiles.
DeviceProperties with_few_sms(int sms)
{
    DeviceProperties few = device();
    few.sm_count = sms;
    return few;
}

/// Checks the problem on a choice, made for `on`.
void check(const GemmCase& gemm, const GemmData& data, const Reference& reference, const KernelChoice& choice,
           const DeviceProperties& on = device())
{
    DeviceOperands operands(stream(), gemm, data);
    const GemmProblem problem = operands.problem();
    GemmCase summed = gemm;
    if (!sums_in_f16(gemm.input, choice)) {
        summed.f16_accumulation = F16Accumulation::in_f32;
    }
    check_choice(stream(), gemm, reference, operands,
                 fmt::format("{} with {}", gemm.describe(), detail::describe_mma(problem, choice)),
                 detail::mma_workspace(problem, choice), summation_of(Variant::mma_sync, summed), Launches::twice,
                 [&](const GemmProblem& launched, const kernels::GemmArguments& arguments,
                     const detail::WorkspaceMemory& memory) {
                     detail::EncodedLaunch launch;
                     const detail::CallStatus encoded =
                         detail::encode_mma(launch, launched, on, choice, arguments, memory);
                     return encoded.status == cudaSuccess ? detail::enqueue(launch, stream()) : encoded;
                 });
}

/// All choices for a problem that differ in more than the number of parts of K: whole tiles, and of the splits the largest.
std::vector<KernelChoice> choices_for(const GemmProblem& problem, const DeviceProperties& on = device())
{
    std::vector<KernelChoice> choices;
    detail::for_each_mma_candidate(problem, on, [&](const KernelChoice& choice) {
        const bool is_next_split = !choices.empty() && choices.back().config == choice.config &&
                                   choices.back().swapped == choice.swapped && choices.back().cluster_k > 1 &&
                                   choices.back().stream_k == choice.stream_k;
        if (is_next_split) {
            choices.back() = choice;
        } else {
            choices.push_back(choice);
        }
    });
    return choices;
}

/// Makes every line of A and B begin at a multiple of 16 bytes.
void align_operands(GemmCase& gemm)
{
    const auto align = [](Layout& layout, std::int64_t rows, std::int64_t columns) {
        constexpr std::int64_t elements = 16;
        const std::int64_t run = layout.row_major ? columns : rows;
        layout.offset = layout.offset / 4 * elements;
        layout.padding = (run + elements - 1) / elements * elements - run + layout.padding / 8 * elements;
    };
    align(gemm.a, gemm.m, gemm.k);
    align(gemm.b, gemm.k, gemm.n);
}

bool has_f16_sums()
{
    bool has = false;
    detail::for_each_mma_candidate(
        detail::resolved({.m = 64,
                          .n = 64,
                          .k = 64,
                          .input = ElementType::f16,
                          .output = ElementType::f32,
                          .f16_accumulation = F16Accumulation::in_f16}),
        device(), [&](const KernelChoice& choice) { has = has || sums_in_f16(ElementType::f16, choice); });
    return has;
}

/// The sum of a row's elements, as a configuration with sums in f16 computes it, and as the kernel does without.
struct SumInEachWay {
    std::string name;
    float in_f16;
    float in_f32;
};

/// Multiplies 64 equal rows by columns of ones, on each configuration with sums in f16.
std::vector<SumInEachWay> sums_of_row(const std::vector<float>& row)
{
    constexpr std::int64_t extent = 64;
    const auto k = static_cast<std::int64_t>(row.size());
    std::vector<f16> elements;
    for (std::int64_t i = 0; i < extent; ++i) {
        for (const float value : row) {
            elements.emplace_back(value);
        }
    }
    const auto a = DeviceBuffer<f16>::from_host(stream(), elements);
    const auto b =
        DeviceBuffer<f16>::from_host(stream(), std::vector<f16>(static_cast<std::size_t>(extent * k), f16(1.0F)));
    DeviceBuffer<float> d(stream(), extent * extent);
    const auto multiply = [&](F16Accumulation sums, std::optional<KernelChoice> choice) {
        const Epilogue epilogue{.f16_accumulation = sums};
        std::vector<float> result(extent * extent);
        if (choice) {
            const detail::GemmOperands given{detail::operand_of(a.matrix(extent, k)),
                                             detail::operand_of(b.matrix(k, extent)),
                                             detail::operand_of(d.matrix(extent, extent))};
            detail::EncodedLaunch launch;
            CHECK(detail::encode_mma(launch, detail::problem_of(given, epilogue), device(), *choice,
                                     detail::arguments_of(given, epilogue), {})
                      .status == cudaSuccess);
            CHECK(detail::enqueue(launch, stream()).status == cudaSuccess);
        } else {
            Gemm::launch(stream(), a.matrix(extent, k), b.matrix(k, extent), d.matrix(extent, extent), epilogue,
                         Variant::mma_sync);
        }
        d.copy_to(result);
        CHECK(std::all_of(result.begin(), result.end(), [&](float value) {
            return value == result[0] || (std::isnan(value) && std::isnan(result[0]));
        }));
        return result[0];
    };
    const float in_f32 = multiply(F16Accumulation::in_f32, std::nullopt);
    std::vector<SumInEachWay> sums{{"Gemm::launch", multiply(F16Accumulation::in_f16, std::nullopt), in_f32}};
    const GemmProblem problem = detail::resolved({.m = extent,
                                                  .n = extent,
                                                  .k = k,
                                                  .input = ElementType::f16,
                                                  .output = ElementType::f32,
                                                  .f16_accumulation = F16Accumulation::in_f16});
    detail::for_each_mma_candidate(problem, device(), [&](const KernelChoice& choice) {
        if (choice.cluster_k == 1 && sums_in_f16(problem.input, choice)) {
            sums.push_back({detail::describe_mma(problem, choice), multiply(F16Accumulation::in_f16, choice), in_f32});
        }
    });
    CHECK(sums.size() > 1);
    return sums;
}

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
        if (quick() && ++number % 4 != 0) {
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
    CHECK(launches > combinations.size() / 4);
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
    for (const InputTypes input : inputs_here()) {
        std::vector<bool> found(kernels::mma_kernels(input).size(), false);
        for (const std::int64_t m : {std::int64_t{150}, std::int64_t{330}}) {
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
    for (const InputTypes input : inputs_here()) {
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

// Sums in f16.

TEST_CASE("sums in f16 are right in all orders, at ragged extents and depths, with epilogues, split or not")
{
    if (!has_f16_sums()) {
        return;
    }
    std::mt19937_64 engine = random_engine(3);
    const auto flip = [&] { return engine() % 2 == 0; };
    std::size_t number = 0;
    std::size_t launches = 0;
    for (const std::int64_t k : {1, 40, 64, 72, 136, 1160}) {
        for (const bool a_row_major : {true, false}) {
            for (const bool b_row_major : {true, false}) {
                for (const Data data_kind : {Data::random, Data::signature}) {
                    if (quick() && ++number % 5 != 0) {  // of 48: in all, each order and depth comes
                        continue;
                    }
                    GemmCase gemm;
                    gemm.m = flip() ? 70 : 200;
                    gemm.n = flip() ? 131 : 88;
                    gemm.k = k;
                    gemm.input = ElementType::f16;
                    gemm.f16_accumulation = F16Accumulation::in_f16;
                    gemm.a.row_major = a_row_major;
                    gemm.b.row_major = b_row_major;
                    gemm.d.row_major = engine() % 4 != 0;
                    align_operands(gemm);
                    gemm.batches = 1 + static_cast<std::int64_t>(engine() % 2);
                    gemm.output = flip() ? ElementType::f32 : ElementType::bf16;
                    gemm.bias_type = ElementType::f16;
                    gemm.bias = flip() ? BiasAxis::per_column : BiasAxis::none;
                    gemm.addend = flip() ? Addend::separate : Addend::none;
                    gemm.beta = gemm.addend == Addend::none ? 0.0F : -0.5F;
                    gemm.activation = flip() ? Activation::relu : Activation::none;
                    gemm.data = data_kind;
                    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
                    const Reference reference(gemm, data);
                    const DeviceOperands operands(stream(), gemm, data);
                    std::set<bool> kinds;
                    for (const KernelChoice& choice : choices_for(detail::resolved(operands.problem()))) {
                        kinds.insert(sums_in_f16(gemm.input, choice));
                        check(gemm, data, reference, choice);
                        ++launches;
                    }
                    CHECK(kinds.contains(true));
                }
            }
        }
    }
    MESSAGE(launches << " checks");
}

TEST_CASE("sums in f16 are those of 64 products, which are added in f32")
{
    if (!has_f16_sums()) {
        return;
    }
    // f16 has no odd number above 2048, and 2048 + 1 is 2048 again. No instruction adds more than 16 products.
    std::vector<float> a(64, 0.0F);
    a[0] = 2048.0F;
    a[16] = a[32] = a[48] = 1.0F;
    for (const SumInEachWay& sum : sums_of_row(a)) {
        CAPTURE(sum.name);
        CHECK(sum.in_f16 == 2048.0F);
        CHECK(sum.in_f32 == 2051.0F);
    }
    // What is in the next 64 is added in f32: none of these is lost.
    a.assign(64, 0.0F);
    a[0] = 2048.0F;
    a.resize(128, 1.0F);
    for (const SumInEachWay& sum : sums_of_row(a)) {
        CAPTURE(sum.name);
        CHECK(sum.in_f16 == 2048.0F + 64.0F);
        CHECK(sum.in_f32 == 2048.0F + 64.0F);
    }
    // In f16 alone, a sum of ones ends at 2048.
    for (const SumInEachWay& sum : sums_of_row(std::vector<float>(4096, 1.0F))) {
        CAPTURE(sum.name);
        CHECK(sum.in_f16 == 4096.0F);
    }
}

TEST_CASE("a sum of 64 products that f16 does not have is infinite, and one of more products is not")
{
    if (!has_f16_sums()) {
        return;
    }
    constexpr float infinity = std::numeric_limits<float>::infinity();
    std::vector<float> a(64, 0.0F);
    a[3] = 40000.0F;
    a[5] = 30000.0F;
    for (const SumInEachWay& sum : sums_of_row(a)) {
        CAPTURE(sum.name);
        CHECK(sum.in_f16 == infinity);
        CHECK(sum.in_f32 == f16(40000.0F) + f16(30000.0F));
    }
    a.assign(192, 0.0F);
    a[3] = 40000.0F;
    a[64 + 5] = 40000.0F;
    a[128 + 60] = 65504.0F;
    for (const SumInEachWay& sum : sums_of_row(a)) {
        CAPTURE(sum.name);
        CHECK(sum.in_f16 == 80000.0F + 65504.0F);
        CHECK(sum.in_f32 == 80000.0F + 65504.0F);
    }
    a.assign(128, 0.0F);
    a[0] = a[40] = 40000.0F;
    a[64] = a[100] = -40000.0F;
    for (const SumInEachWay& sum : sums_of_row(a)) {
        CAPTURE(sum.name);
        CHECK(std::isnan(sum.in_f16));
        CHECK(sum.in_f32 == 0.0F);
    }
}

TEST_CASE("operands that are not aligned to 16 bytes keep sums in f32, and explain says what a product has")
{
    if (!has_f16_sums()) {
        return;
    }
    GemmProblem problem{.m = 512, .n = 512, .k = 512, .input = ElementType::f16, .output = ElementType::f32};
    const auto says = [&](std::string_view what) {
        return GemmPlan::explain(problem, device(), Variant::mma_sync).find(what) != std::string::npos;
    };
    CHECK_FALSE(says("sums in"));
    problem.f16_accumulation = F16Accumulation::in_f16;
    CHECK(says(", sums in f16 of 64 products"));
    problem.a.address_alignment = 2;
    CHECK(says("Mma64x64Any"));
    CHECK(says(", sums in f32"));
    problem.input = ElementType::bf16;
    CHECK_FALSE(says("sums in"));
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
