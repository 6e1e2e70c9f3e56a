/// Gated pairs: act(gate) * up of pairs of columns, with every kernel that computes them.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <optional>
#include <random>
#include <source_location>
#include <string>
#include <vector>

#include "gemm/gemm_operands.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/variant_chooser.hpp"
#include "support/gemm_runner.hpp"
#include "support/hopper_device.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;
using detail::KernelChoice;
using kernels::HopperKernel;

namespace {

constexpr std::array gatings{Gating::interleaved, Gating::side_by_side};
constexpr std::array<std::int64_t, 4> d_paddings{0, 8, 1, 32};
constexpr std::array bias_axes{BiasAxis::none, BiasAxis::per_row, BiasAxis::per_column};

Stream& stream()
{
    static Stream instance;
    return instance;
}

/// Gives the case one of many epilogues, layouts of D and types.
void vary(GemmCase& gemm, std::mt19937_64& engine)
{
    gemm.output = output_types[engine() % output_types.size()];
    gemm.bias_type = addend_types[engine() % addend_types.size()];
    gemm.bias = bias_axes[engine() % bias_axes.size()];
    gemm.bias_offset = static_cast<std::int64_t>(engine() % 2);
    gemm.activation = all_activations[engine() % all_activations.size()];
    gemm.gating = gatings[engine() % gatings.size()];
    gemm.d.row_major = engine() % 4 != 0;
    gemm.d.padding = d_paddings[engine() % d_paddings.size()];
    if (is_float8(gemm.output)) {
        gemm.scale_d = 0.5F;
        gemm.amax_d = 0.0F;
    }
    gemm.alpha = 0.75F;
    if (engine() % 2 == 0) {
        gemm.scale_a = 0.5F;
        gemm.row_scales = engine() % 2 == 0;
    }
    if (engine() % 2 == 0) {
        gemm.scale_b = 1.5F;
        gemm.column_scales = engine() % 2 == 0;
    }
}

/// Returns D's elements row by row.
std::vector<std::uint32_t> elements_of(const GemmCase& gemm, const GemmData& data, const HostArray& result)
{
    std::vector<std::uint32_t> elements;
    for (std::int64_t batch = 0; batch < gemm.batches; ++batch) {
        for (std::int64_t row = 0; row < gemm.m; ++row) {
            for (std::int64_t column = 0; column < data.d_place.columns; ++column) {
                elements.push_back(result.bits(data.d_place.index(batch, row, column)));
            }
        }
    }
    return elements;
}

void check_amax(const GemmCase& gemm, const Reference& reference, const DeviceOperands& operands,
                const Summation& summation, const std::string& name)
{
    if (!gemm.amax_d) {
        return;
    }
    if (const auto wrong = reference.find_wrong_amax(operands.download_amax(), summation)) {
        report_failure(gemm.size(), name, *wrong);
    }
}

/// Runs the case with every variant that takes it. Returns how many did.
int check_variants(const GemmCase& gemm)
{
    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
    const Reference reference(gemm, data);
    DeviceOperands operands(stream(), gemm, data);
    std::optional<std::vector<std::uint32_t>> simt;
    int ran = 0;
    std::vector<Variant> variants = all_variants();
    variants.push_back(Variant::automatic);
    for (const Variant variant : variants) {
        if (!GemmPlan::refusal(operands.problem(), device(), variant).empty()) {
            continue;
        }
        ++ran;
        const std::string name = fmt::format("{} with {}", gemm.describe(), to_string(variant));
        trace(name);
        const HostArray result = operands.launch(variant);
        if (const auto wrong = reference.find_wrong_element(result, summation_of(variant, gemm))) {
            report_failure(gemm.size(), name, *wrong);
        }
        check_amax(gemm, reference, operands, summation_of(variant, gemm), name);
        if (variant == Variant::simt_naive || variant == Variant::simt_register_blocked) {
            const std::vector<std::uint32_t> elements = elements_of(gemm, data, result);
            if (simt && *simt != elements) {
                report_failure(gemm.size(), name, "other bits than the naive kernel");
            }
            simt = elements;
        }
    }
    return ran;
}

/// Runs one Hopper configuration. Returns D's elements.
std::vector<std::uint32_t> check_hopper(const GemmCase& gemm, const KernelChoice& choice, const HopperKernel& kernel)
{
    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
    DeviceOperands operands(stream(), gemm, data);
    const std::string name = fmt::format("{} with {}, cluster_n {}", gemm.describe(), kernel.name, choice.cluster_n);
    REQUIRE_MESSAGE(detail::is_hopper_choice_valid(detail::resolved(operands.problem()), device(), choice), name);
    trace(name);
    const HostArray result = operands.launch([&](const detail::GemmOperands& given, const Epilogue& epilogue) {
        detail::require_operands(stream(), given, epilogue, "gated_test", std::source_location::current());
        const detail::CallStatus ended = detail::launch_hopper(stream(), detail::problem_of(given, epilogue), choice,
                                                               detail::arguments_of(given, epilogue), {});
        REQUIRE(ended.status == cudaSuccess);
    });
    const Reference reference(gemm, data);
    if (const auto wrong = reference.find_wrong_element(result, summation_of(Variant::hopper, gemm))) {
        report_failure(gemm.size(), name, *wrong);
    }
    check_amax(gemm, reference, operands, summation_of(Variant::hopper, gemm), name);
    return elements_of(gemm, data, result);
}

}  // namespace

TEST_CASE("gated pairs are right with every variant that takes them, in odd shapes and every order")
{
    std::mt19937_64 engine = random_engine(1);
    const std::array<std::int64_t, 6> ms{1, 7, 33, 64, 65, 130};
    const std::array<std::int64_t, 7> ns{2, 4, 6, 34, 64, 130, 258};
    const std::array<std::int64_t, 5> ks{0, 1, 17, 64, 96};
    for (int i = 0; i < (quick() ? 60 : 2000); ++i) {
        GemmCase gemm;
        gemm.m = ms[engine() % ms.size()];
        gemm.n = ns[engine() % ns.size()];
        gemm.k = ks[engine() % ks.size()];
        gemm.input = input_types[engine() % input_types.size()];
        gemm.a.row_major = engine() % 2 == 0;
        gemm.b.row_major = engine() % 2 == 0;
        gemm.a.offset = static_cast<std::int64_t>(engine() % 2);
        vary(gemm, engine);
        gemm.batches = 1 + static_cast<std::int64_t>(engine() % 2);
        gemm.b.shared = engine() % 2 == 0;
        CHECK(check_variants(gemm) > 0);
    }
}

TEST_CASE("every Hopper configuration that takes gated pairs is right")
{
    if (!is_hopper_here()) {
        return;
    }
    std::mt19937_64 engine = random_engine(2);
    int taken = 0;
    for (const InputTypes input : input_types) {
        if (input == InputTypes(ElementType::f32)) {
            continue;
        }
        const auto table = kernels::hopper_kernels(size_of(input));
        const auto chunk = static_cast<std::int64_t>(16 / size_of(input));
        for (std::size_t config = 0; config < table.size(); ++config) {
            const HopperKernel& kernel = table[config];
            if (!kernel.gates) {
                continue;
            }
            ++taken;
            for (int i = 0; i < (quick() ? 2 : 40); ++i) {
                GemmCase gemm;
                gemm.input = input;
                gemm.m = kernel.tile_m + static_cast<std::int64_t>(engine() % 70);
                gemm.n = 2 * chunk * (1 + static_cast<std::int64_t>(engine() % 40));
                gemm.k = chunk * (1 + static_cast<std::int64_t>(engine() % 30));
                gemm.fp8_accumulation =
                    kernel.two_level_columns > 0 ? Fp8Accumulation::two_level : Fp8Accumulation::fast;
                vary(gemm, engine);
                const bool n_major = size_of(input) == 2 && kernel.tile_n % 128 == 0 && engine() % 2 == 0;
                gemm.b.row_major = n_major;
                if (n_major) {
                    gemm.gating = Gating::side_by_side;
                }
                gemm.batches = 1 + static_cast<std::int64_t>(engine() % 2);
                gemm.b.shared = true;
                KernelChoice choice{.variant = Variant::hopper, .config = static_cast<std::uint8_t>(config), .band = 2};
                choice.cluster_n = engine() % 2 == 0 ? 2 : 1;
                choice.clusters = static_cast<std::uint16_t>(1 + engine() % 3);
                check_hopper(gemm, choice, kernel);
            }
        }
    }
    CHECK(taken > 0);
}

TEST_CASE("pairs with silu give the same bits where TMA stores D, which has code of its own, as elsewhere")
{
    if (!is_hopper_here()) {
        return;
    }
    unsigned turn = 0;
    for (const InputTypes input : {InputTypes(ElementType::bf16), InputTypes(ElementType::f8e4m3)}) {
        const auto table = kernels::hopper_kernels(size_of(input));
        for (std::size_t config = 0; config < table.size(); ++config) {
            const HopperKernel& kernel = table[config];
            if (!kernel.gates || !kernel.streams_parts) {
                continue;
            }
            for (const Gating gating : gatings) {
                for (const BiasAxis bias : {BiasAxis::none, BiasAxis::per_column}) {
                    GemmCase gemm;
                    gemm.input = input;
                    gemm.output = turn % 2 == 0 ? ElementType::bf16 : ElementType::f16;
                    gemm.m = kernel.tile_m + 24;
                    gemm.n = 2 * kernel.tile_n + 32;
                    gemm.data = gemm.output == ElementType::bf16 && turn % 4 == 2 ? Data::non_finite : Data::random;
                    gemm.k = gemm.data == Data::non_finite ? 16 : 3 * kernel.block_k;  // a long sum would be NaN
                    gemm.fp8_accumulation = Fp8Accumulation::fast;
                    gemm.b.row_major = false;
                    gemm.gating = gating;
                    gemm.activation = Activation::silu;
                    gemm.bias = bias;
                    gemm.alpha = 0.25F;
                    gemm.batches = 1 + turn % 2;
                    gemm.b.shared = true;
                    const KernelChoice choice{.variant = Variant::hopper,
                                              .config = static_cast<std::uint8_t>(config),
                                              .band = 2,
                                              .clusters = 3};
                    const std::vector<std::uint32_t> by_tma = check_hopper(gemm, choice, kernel);
                    gemm.d.padding = 1;
                    if (by_tma != check_hopper(gemm, choice, kernel)) {
                        report_failure(gemm.size(), fmt::format("{} with {}", gemm.describe(), kernel.name),
                                       "other bits than by TMA");
                    }
                    ++turn;
                }
            }
        }
    }
    CHECK(turn > 0);
}

TEST_CASE("a large aligned product of gated pairs runs on Hopper's tensor cores, whatever the order of D")
{
    if (!is_hopper_here()) {
        return;
    }
    for (const InputTypes input : {InputTypes(ElementType::bf16), InputTypes(ElementType::f8e4m3)}) {
        for (const bool row_major : {true, false}) {
            for (const Gating gating : gatings) {
                GemmCase gemm;
                gemm.m = 200;
                gemm.n = 320;
                gemm.k = 128;
                gemm.input = input;
                gemm.output = ElementType::bf16;
                gemm.b.row_major = false;
                gemm.d.row_major = row_major;
                gemm.gating = gating;
                gemm.activation = Activation::silu;
                const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
                DeviceOperands operands(stream(), gemm, data);
                CHECK(GemmPlan::prepare(Device::current(), operands.problem()).variant() == Variant::hopper);
                if (const auto wrong = find_wrong_element(gemm, data, operands.launch_plan(Variant::automatic),
                                                          summation_of(Variant::hopper, gemm))) {
                    report_failure(gemm.size(), gemm.describe(), *wrong);
                }
            }
        }
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
