/// The mma.sync kernel: every configuration that runs on the device, with every pair of types, orders, alignments,
/// epilogues and split, at ragged shapes. Runs on any device of compute capability 7.5 or later, or an emulated one.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <source_location>
#include <vector>

#include "gemm/backend.hpp"
#include "gemm/gemm_operands.hpp"
#include "gemm/mma/mma_launch.hpp"
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

/// Launches the problem on a choice, twice, with NaN in place of partial sums. The result must be right and have the same bits
/// both times, and the counters must be zero afterwards.
void check(const GemmCase& gemm, const GemmData& data, const Reference& reference, const KernelChoice& choice)
{
    DeviceOperands operands(stream(), gemm, data);
    const GemmProblem problem = operands.problem();
    const std::string name = fmt::format("{} with {}", gemm.describe(), detail::describe_mma(problem, choice));
    trace(name);
    const auto fail = [&](const std::string& what) { report_failure(gemm.size(), name, what); };
    const detail::WorkspaceNeed need = detail::mma_workspace(problem, choice);
    auto partials =
        DeviceBuffer<std::byte>::from_host(stream(), std::vector<std::byte>(need.partial_bytes, std::byte{0xFF}));
    const std::vector<std::uint32_t> zeros(need.counters, 0);
    auto counters = DeviceBuffer<std::uint32_t>::from_host(stream(), zeros);
    const auto enqueue = [&](const detail::GemmOperands& given, const Epilogue& epilogue) {
        detail::require_operands(stream(), given, epilogue, "mma_test", std::source_location::current());
        detail::EncodedLaunch launch;
        detail::CallStatus ended = detail::encode_mma(
            launch, detail::problem_of(given, epilogue), device(), choice, detail::arguments_of(given, epilogue),
            {.partials = reinterpret_cast<float*>(partials.data()), .arrivals = counters.data()});
        if (ended.status == cudaSuccess) {
            ended = detail::enqueue(launch, stream());
        }
        if (ended.status != cudaSuccess) {
            fail(fmt::format("the launch failed: {}: {}", ended.call, cudaGetErrorString(ended.status)));
        }
    };
    try {
        const HostArray result = operands.launch(enqueue);
        const Summation summation = summation_of(Variant::mma_sync, gemm);
        if (const auto wrong = reference.find_wrong_element(result, summation)) {
            fail(*wrong);
        }
        if (gemm.pre_activation) {
            if (const auto wrong = reference.find_wrong_pre_activation(operands.download_pre_activation(), summation)) {
                fail(*wrong);
            }
        }
        if (operands.launch(enqueue).bytes() != result.bytes()) {
            fail("the second launch gave other bits");
        }
        std::vector<std::uint32_t> after(need.counters);
        counters.copy_to(after);
        if (after != zeros) {
            fail("counters of the workspace are not zero after the launch");
        }
    } catch (const Error& error) {
        fail(error.what());
    }
}

/// All choices for a problem that differ in more than the number of parts of K: whole tiles, and of the splits the largest.
std::vector<KernelChoice> choices_for(const GemmProblem& problem)
{
    std::vector<KernelChoice> choices;
    detail::for_each_mma_candidate(problem, device(), [&](const KernelChoice& choice) {
        const bool is_next_split = !choices.empty() && choices.back().config == choice.config &&
                                   choices.back().swapped == choice.swapped && choices.back().cluster_k > 1;
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
        gemm.fp8_accumulation = take_flag() ? Fp8Accumulation::fast : Fp8Accumulation::two_level;
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
        for (const KernelChoice& choice : choices_for(detail::resolved(operands.problem()))) {
            check(gemm, data, reference, choice);
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
            const GemmProblem problem = detail::resolved({.m = 272,
                                                          .n = 272,
                                                          .k = 1168,
                                                          .input = input,
                                                          .output = ElementType::f32,
                                                          .a = {.row_major = k_major},
                                                          .b = {.row_major = !k_major}});
            detail::for_each_mma_candidate(problem, device(),
                                           [&](const KernelChoice& choice) { found[choice.config] = true; });
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
