/// Every configuration of the Blackwell kernel against the float64 reference: shapes around its tiles, all types, majors,
/// epilogues, operands that TMA cannot address, and the transposed product. Needs a device of compute capability 10, or the
/// emulated one.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "gemm/blackwell/blackwell_chooser.hpp"
#include "gemm/blackwell/blackwell_launch.hpp"
#include "gemm/gemm_operands.hpp"
#include "support/choice_runner.hpp"
#include "support/gemm_runner.hpp"
#include "support/pair_covering.hpp"
#include "support/test_main.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

using kernels::BlackwellKernel;

const std::array inputs{InputTypes(ElementType::bf16),
                        InputTypes(ElementType::f16),
                        InputTypes(ElementType::tf32),
                        InputTypes(ElementType::f8e4m3),
                        InputTypes(ElementType::f8e5m2),
                        InputTypes(ElementType::f8e4m3, ElementType::f8e5m2),
                        InputTypes(ElementType::f8e5m2, ElementType::f8e4m3)};
constexpr std::array outputs{ElementType::f32, ElementType::f16, ElementType::bf16};
constexpr std::array bias_axes{BiasAxis::none, BiasAxis::per_row, BiasAxis::per_column};
constexpr auto activations = all_activations;
constexpr std::array addends{Addend::none, Addend::separate, Addend::in_place};
constexpr std::array<std::int64_t, 3> paddings{0, 16, 1};  // elements: TMA accepts 16 of any type, but never 1
constexpr std::array<std::int64_t, 3> offsets{0, 16, 1};
constexpr std::array<float, 3> alphas{1, -1, 0.5F};
constexpr std::array<float, 2> betas{1, -0.5F};
constexpr std::array<std::int64_t, 3> batch_counts{1, 2, 3};

Stream& stream()
{
    static Stream instance;
    return instance;
}

/// Returns true if the device has the kernels; otherwise says so.
bool is_blackwell_here()
{
    const int major = Device::current().properties().compute_capability_major;
    const bool here = major == 10 || major == 11;
    if (!here) {
        MESSAGE("skipped: the device does not have compute capability 10 or 11");
    }
    return here;
}

std::size_t most_configs()
{
    return std::max({kernels::blackwell_kernels(1).size(), kernels::blackwell_kernels(2).size(),
                     kernels::blackwell_kernels(4).size()});
}

/// Returns the configuration `wanted`, or another one if it does not load the problem's operands.
const BlackwellKernel& kernel_for(const GemmProblem& problem, std::size_t wanted)
{
    const auto table = kernels::blackwell_kernels(size_of(problem.input));
    const bool copies = detail::blackwell_shape(problem, false).copies;
    const BlackwellKernel* kernel = &table[wanted % table.size()];
    while (kernel->config->copies != copies) {
        kernel = &table[++wanted % table.size()];
    }
    return *kernel;
}

/// How a test divides the work.
struct Wanted {
    bool swapped = false;
    std::int64_t clusters = 0;  // of stream-K, if the configuration has it; 0: whole tiles
};

/// Checks the problem on a configuration, and with stream-K that its second launch has the same bits.
void check(const GemmCase& gemm, std::size_t config, const Wanted& wanted = {})
{
    const GemmData data = GemmData::make(gemm, Guards::both_sides, seed());
    DeviceOperands operands(stream(), gemm, data);
    const GemmProblem problem = operands.problem();
    const BlackwellKernel& kernel = kernel_for(problem, config);
    detail::KernelChoice choice{.variant = Variant::blackwell, .swapped = wanted.swapped, .band = 4};
    const auto table = kernels::blackwell_kernels(size_of(problem.input));
    choice.config = static_cast<std::uint8_t>(&kernel - table.data());
    const std::int64_t steps =
        detail::blackwell_units(*kernel.config, detail::blackwell_shape(problem, wanted.swapped)) *
        detail::blackwell_stages(problem);
    choice.clusters = static_cast<std::uint16_t>(std::min(wanted.clusters, steps));
    choice.stream_k = kernel.config->shares_tiles() && choice.clusters > 0;
    const std::string name = fmt::format("{} with {}", gemm.describe(), detail::describe_blackwell(problem, choice));
    if (!detail::is_blackwell_choice_valid(problem, choice)) {
        report_failure(gemm.size(), name, "the choice is not valid");
        return;
    }
    check_choice(stream(), gemm, Reference(gemm, data), operands, name, detail::blackwell_workspace(problem, choice),
                 {}, choice.stream_k ? Launches::twice : Launches::once,
                 [&](const GemmProblem& launched, const kernels::GemmArguments& arguments,
                     const detail::WorkspaceMemory& memory) {
                     return detail::launch_blackwell(stream(), launched, kernel, choice, arguments, memory);
                 });
}

}  // namespace

TEST_CASE("every configuration is right for every pair of types, majors, layouts and epilogues, at ragged shapes")
{
    if (!is_blackwell_here()) {
        return;
    }
    std::mt19937_64 engine = random_engine(1);
    const std::vector<std::int64_t> m_edges{1, 127, 128, 129, 257, 513};
    const std::vector<std::int64_t> n_edges{1, 64, 129, 256, 257};
    const std::vector<std::int64_t> k_edges{0, 1, 16, 63, 64, 65, 200, 400};
    const auto count = [](const auto& levels) { return static_cast<int>(levels.size()); };
    const std::vector<std::int64_t> cluster_counts{0, 2, 5, 11};
    const std::vector<int> levels{static_cast<int>(most_configs()),
                                  2,
                                  count(cluster_counts),
                                  count(m_edges),
                                  count(n_edges),
                                  count(k_edges),
                                  count(inputs),
                                  count(outputs),
                                  count(outputs),
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
                                  count(alphas),
                                  2,
                                  2,
                                  count(betas),
                                  count(addends),
                                  count(bias_axes),
                                  count(activations),
                                  count(batch_counts),
                                  2};
    const std::vector<Combination> combinations = pair_covering(levels, engine);
    MESSAGE(combinations.size() << " problems");
    std::size_t number = 0;
    for (const Combination& combination : combinations) {
        if (quick() && ++number % 4 != 0) {
            continue;
        }
        std::size_t next = 0;
        const auto take = [&](const auto& values) { return values[static_cast<std::size_t>(combination[next++])]; };
        const auto take_flag = [&] { return combination[next++] != 0; };
        GemmCase gemm;
        const auto config = static_cast<std::size_t>(combination[next++]);
        const bool swapped = take_flag();
        const std::int64_t clusters = take(cluster_counts);
        gemm.m = take(m_edges);
        gemm.n = take(n_edges);
        gemm.k = take(k_edges);
        gemm.input = take(inputs);
        gemm.output = take(outputs);
        gemm.bias_type = take(outputs);
        for (Layout* layout : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
            layout->row_major = take_flag();
        }
        for (Layout* layout : {&gemm.a, &gemm.b, &gemm.c, &gemm.d}) {
            layout->padding = take(paddings);
        }
        for (Layout* layout : {&gemm.a, &gemm.b, &gemm.d}) {
            layout->offset = take(offsets);
        }
        gemm.alpha = take(alphas);
        if (take_flag()) {
            gemm.scale_a = 0.5F;
            gemm.row_scales = true;
        }
        if (take_flag()) {
            gemm.scale_b = 2.0F;
            gemm.column_scales = true;
        }
        gemm.beta = take(betas);
        gemm.addend = take(addends);
        gemm.bias = take(bias_axes);
        gemm.activation = take(activations);
        gemm.batches = take(batch_counts);
        if (gemm.batches == 3) {
            gemm.a.shared = true;
        }
        gemm.data = take_flag() ? Data::signature : Data::random;
        if (gemm.addend == Addend::none) {
            gemm.beta = 0;
        }
        if (gemm.output == ElementType::f16 && gemm.data == Data::signature) {
            gemm.alpha *= 0x1p-9F;                            // into the range of f16, and still exact
            gemm.alpha *= gemm.column_scales ? 0.25F : 1.0F;  // the largest of them is 4
        }
        check(gemm, config, {.swapped = swapped, .clusters = clusters});
    }
}

TEST_CASE("every configuration is right for every combination of types and majors")
{
    if (!is_blackwell_here()) {
        return;
    }
    for (const InputTypes& input : inputs) {
        for (std::size_t config = 0; config < kernels::blackwell_kernels(size_of(input)).size(); ++config) {
            for (unsigned majors = 0; majors < 4; ++majors) {
                if (quick() && (config + majors) % 4 != 0) {
                    continue;
                }
                GemmCase gemm;
                gemm.m = 272;
                gemm.n = 272;
                gemm.k = 144;
                gemm.input = input;
                gemm.a.row_major = (majors & 1U) != 0;
                gemm.b.row_major = (majors & 2U) != 0;
                gemm.data = Data::signature;
                check(gemm, config);
            }
        }
    }
}

TEST_CASE("configurations that copy are right with operands that TMA cannot address, over many rounds of the ring")
{
    if (!is_blackwell_here()) {
        return;
    }
    const auto table = kernels::blackwell_kernels(2);
    for (std::size_t config = 0; config < table.size(); ++config) {
        if (!table[config].config->copies) {
            continue;
        }
        for (const std::int64_t k : {1, 64, 900}) {
            GemmCase gemm;
            gemm.m = 513;
            gemm.n = 129;
            gemm.k = k;
            gemm.input = ElementType::bf16;
            gemm.a.padding = 1;
            gemm.b.offset = 1;
            gemm.d.padding = 1;
            gemm.data = Data::signature;
            check(gemm, config);
        }
    }
}

TEST_CASE("every configuration is right for many tiles per CTA")
{
    if (!is_blackwell_here()) {
        return;
    }
    const auto table = kernels::blackwell_kernels(2);
    for (std::size_t config = 0; config < table.size(); ++config) {
        const kernels::BlackwellConfig& tile = *table[config].config;
        for (const std::int64_t k : {64, 600}) {
            if (tile.copies || (quick() && k == 600)) {
                continue;
            }
            // A little more than two waves of tiles.
            const std::int64_t slots = Device::current().properties().sm_count / std::int64_t{tile.cluster};
            GemmCase gemm;
            gemm.m = 3 * tile.cluster_m() + 1;
            gemm.n = (slots / 2 + 1) * tile.block_n - 8;
            gemm.k = k;
            gemm.input = ElementType::bf16;
            gemm.output = ElementType::bf16;
            gemm.b.row_major = false;
            gemm.data = Data::signature;
            check(gemm, config);
        }
    }
}

TEST_CASE("every configuration that shares tiles is right for every way in which clusters can divide them")
{
    if (!is_blackwell_here()) {
        return;
    }
    const auto table = kernels::blackwell_kernels(2);
    for (std::size_t config = 0; config < table.size(); ++config) {
        const kernels::BlackwellConfig& tile = *table[config].config;
        for (const std::int64_t clusters : {1, 2, 3, 7, 12, 13, 37}) {
            if (!tile.shares_tiles() || (quick() && (config + static_cast<std::size_t>(clusters)) % 3 != 0)) {
                continue;
            }
            // Three tiles of 12 stages: whole ones, parts of two tiles, parts of one, single stages.
            GemmCase gemm;
            gemm.m = tile.cluster_m() + 40;
            gemm.n = tile.block_n;
            gemm.k = 64 * 12 - 8;
            gemm.batches = 2;
            gemm.input = ElementType::bf16;
            gemm.output = ElementType::bf16;
            gemm.b.row_major = false;
            gemm.addend = Addend::in_place;
            gemm.beta = 1;
            gemm.bias = BiasAxis::per_column;
            gemm.activation = Activation::gelu;
            check(gemm, config, {.clusters = clusters});
        }
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
