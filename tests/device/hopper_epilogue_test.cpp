/// The paths of the Hopper kernels to D: by TMA and by threads, with C from the ring, from the addresses that TMA cannot
/// use, or in place. All of them give the same bits. Needs a device of compute capability 9.0, or the emulated one.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <bit>
#include <optional>
#include <source_location>
#include <string>
#include <vector>

#include "gemm/gemm_operands.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "support/gemm_runner.hpp"
#include "support/hopper_device.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;
using detail::KernelChoice;
using kernels::HopperKernel;

namespace {

/// Where the operands of the epilogue are: what decides which path the kernel takes.
struct Path {
    const char* name;
    std::int64_t d_padding;
    std::int64_t c_padding;
    bool c_row_major;
    bool in_place;
    std::int64_t bias_offset;
    std::int64_t pre_activation_padding;
    bool swapped = false;
};
constexpr std::array paths{
    Path{"all by TMA", 0, 0, true, false, 0, 0},
    Path{"C in place", 0, 0, true, true, 0, 8},
    Path{"wide rows", 16, 32, true, false, 0, 0},
    Path{"C that TMA cannot address", 0, 1, true, false, 1, 1},
    Path{"C in the other order", 0, 0, false, false, 3, 0},
    Path{"D that TMA cannot address", 1, 0, true, false, 0, 0},
    Path{"neither", 1, 1, true, false, 1, 1},
    Path{"the transposed product", 0, 0, true, false, 0, 0, true},
};

std::int64_t divide_up(std::int64_t value, std::int64_t by) { return (value + by - 1) / by; }

Stream& stream()
{
    static Stream instance;
    return instance;
}

/// Returns the bits of D's elements row by row, then of amax and the pre-activation.
std::vector<std::uint32_t> run(const GemmCase& gemm, const KernelChoice& choice, const std::string& name)
{
    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
    DeviceOperands operands(stream(), gemm, data);
    const detail::WorkspaceNeed need = detail::hopper_workspace(operands.problem(), choice);
    DeviceBuffer<std::byte> partials(stream(), need.partial_bytes);
    auto counters = DeviceBuffer<std::uint32_t>::from_host(stream(), std::vector<std::uint32_t>(need.counters, 0));
    trace(name);
    const HostArray result = operands.launch([&](const detail::GemmOperands& given, const Epilogue& epilogue) {
        detail::require_operands(stream(), given, epilogue, "hopper_epilogue_test", std::source_location::current());
        const detail::CallStatus ended = detail::launch_hopper(
            stream(), detail::problem_of(given, epilogue), choice, detail::arguments_of(given, epilogue),
            {.partials = reinterpret_cast<float*>(partials.data()), .arrivals = counters.data(), .copies = nullptr});
        REQUIRE(ended.status == cudaSuccess);
    });
    const Reference reference(gemm, data);
    const Summation summation = summation_of(Variant::hopper, gemm);
    if (const auto wrong = reference.find_wrong_element(result, summation)) {
        report_failure(gemm.size(), name, *wrong);
    }
    std::vector<std::uint32_t> elements;
    const auto append = [&](const HostArray& array, const Placement& place) {
        for (std::int64_t batch = 0; batch < gemm.batches; ++batch) {
            for (std::int64_t row = 0; row < gemm.m; ++row) {
                for (std::int64_t column = 0; column < gemm.n; ++column) {
                    elements.push_back(array.bits(place.index(batch, row, column)));
                }
            }
        }
    };
    append(result, data.d_place);
    if (gemm.amax_d) {
        const float amax = operands.download_amax();
        if (const auto wrong = reference.find_wrong_amax(amax, summation)) {
            report_failure(gemm.size(), name, *wrong);
        }
        elements.push_back(std::bit_cast<std::uint32_t>(amax));
    }
    if (gemm.pre_activation) {
        const HostArray x = operands.download_pre_activation();
        if (const auto wrong = reference.find_wrong_pre_activation(x, summation)) {
            report_failure(gemm.size(), name, *wrong);
        }
        append(x, data.pre_activation_place);
    }
    return elements;
}

/// Compares all paths for one configuration and epilogue. D has several tiles; the last one of each row and column is cut
/// off. There are fewer clusters than tiles, so that the slots of the ring that carry C come round.
void compare_paths(const HopperKernel& kernel, std::size_t config, GemmCase gemm, bool stream_k)
{
    gemm.m = kernel.tile_m + 24;
    gemm.n = 2 * kernel.tile_n + (is_float8(gemm.output) ? 16 : 8);    // TMA stores whole chunks of 16 bytes
    gemm.k = gemm.data == Data::non_finite ? 16 : 5 * kernel.block_k;  // a long sum would be NaN everywhere
    gemm.b.row_major = false;
    const std::int64_t tiles = divide_up(gemm.m, kernel.tile_m) * divide_up(gemm.n, kernel.tile_n) * gemm.batches;
    KernelChoice choice{.variant = Variant::hopper, .config = static_cast<std::uint8_t>(config), .band = 2};
    choice.clusters = static_cast<std::uint16_t>(stream_k ? tiles - 1 : divide_up(tiles, 3));
    choice.stream_k = stream_k;
    std::optional<std::vector<std::uint32_t>> first;
    for (const Path& path : paths) {
        choice.swapped = path.swapped;
        gemm.d.padding = path.d_padding;
        gemm.c.padding = path.c_padding;
        gemm.c.row_major = path.c_row_major;
        gemm.bias_offset = path.bias_offset;
        if (gemm.pre_activation) {
            gemm.pre_activation->padding = path.pre_activation_padding;
        }
        gemm.addend = gemm.beta == 0                             ? Addend::none
                      : path.in_place && !is_float8(gemm.output) ? Addend::in_place
                                                                 : Addend::separate;
        const std::string name =
            fmt::format("{}, {}, with {}{}", path.name, gemm.describe(), kernel.name, stream_k ? ", stream-K" : "");
        const std::vector<std::uint32_t> elements = run(gemm, choice, name);
        if (!first) {
            first = elements;
        } else if (!path.swapped && *first != elements) {
            report_failure(gemm.size(), name, "other bits than by TMA");
        }
    }
}

}  // namespace

TEST_CASE("every path to D gives the same bits, in every configuration")
{
    if (!is_hopper_here()) {
        return;
    }
    unsigned turn = 0;
    for (const InputTypes input :
         {InputTypes(ElementType::bf16), InputTypes(ElementType::f8e4m3), InputTypes(ElementType::tf32)}) {
        const auto table = kernels::hopper_kernels(size_of(input));
        for (std::size_t config = 0; config < table.size(); ++config) {
            if (table[config].copies) {
                continue;  // it has no operand to copy here
            }
            for (const ElementType output : output_types) {
                for (const Activation activation : {Activation::none, Activation::gelu, Activation::silu}) {
                    ++turn;
                    if (quick() && turn % 13 != 0) {  // still each configuration
                        continue;
                    }
                    GemmCase gemm;
                    gemm.input = input;
                    gemm.output = output;
                    gemm.fp8_accumulation = Fp8Accumulation::fast;
                    gemm.bias_type = addend_types[turn % 3];
                    gemm.bias = turn % 4 == 0 ? BiasAxis::per_row : BiasAxis::per_column;
                    gemm.beta = turn % 5 == 0 ? 0.0F : -0.5F;
                    gemm.alpha = 0.25F;
                    gemm.activation = activation;
                    if (is_float8(output)) {
                        gemm.scale_d = 50.0F;
                        gemm.amax_d = 0.0F;
                    }
                    gemm.batches = 1 + turn % 2;
                    if (turn % 4 < 2) {
                        gemm.pre_activation = Layout{};
                    }
                    compare_paths(table[config], config, gemm, false);
                    if (table[config].shares_tiles && turn % 3 == 0) {
                        compare_paths(table[config], config, gemm, true);
                    }
                }
            }
        }
    }
}

TEST_CASE("epilogues that are applied on the way to the store give the bits of the other paths")
{
    if (!is_hopper_here()) {
        return;
    }
    struct Streamed {
        BiasAxis bias;
        Activation activation;
        float beta;
    };
    constexpr BiasAxis column = BiasAxis::per_column;
    constexpr std::array streamed{Streamed{column, Activation::none, 0.0F},
                                  Streamed{column, Activation::relu, 0.0F},
                                  Streamed{column, Activation::gelu_tanh, 0.0F},
                                  Streamed{column, Activation::gelu, 0.0F},
                                  Streamed{column, Activation::silu, 0.0F},
                                  Streamed{BiasAxis::none, Activation::relu, 0.0F},
                                  Streamed{BiasAxis::none, Activation::gelu_tanh, 0.0F},
                                  Streamed{BiasAxis::none, Activation::silu, 0.0F},
                                  Streamed{BiasAxis::none, Activation::none, -0.5F}};
    unsigned turn = 0;
    for (const InputTypes input : {InputTypes(ElementType::bf16), InputTypes(ElementType::f8e4m3)}) {
        const auto table = kernels::hopper_kernels(size_of(input));
        for (std::size_t config = 0; config < table.size(); ++config) {
            if (!table[config].streams) {
                continue;
            }
            for (const ElementType output : {ElementType::f16, ElementType::bf16}) {
                for (const Streamed& epilogue : streamed) {
                    ++turn;
                    if (quick() && turn % 13 != 0) {  // still each configuration
                        continue;
                    }
                    GemmCase gemm;
                    gemm.input = input;
                    gemm.output = output;
                    gemm.fp8_accumulation = Fp8Accumulation::fast;
                    gemm.bias_type = addend_types[turn % 3];
                    gemm.bias = epilogue.bias;
                    gemm.beta = epilogue.beta;
                    gemm.alpha = 0.25F;
                    gemm.activation = epilogue.activation;
                    gemm.batches = 1 + turn % 2;
                    gemm.data = turn % 4 == 0 ? Data::non_finite : Data::random;
                    compare_paths(table[config], config, gemm, false);
                }
            }
        }
    }
    CHECK(turn > 0);
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
