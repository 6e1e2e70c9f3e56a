/// Tiles that clusters of the Hopper kernels share: the sum has the same bits whether all sharers, some, or none stay
/// to add it up. Needs a device of compute capability 9.0, or the emulated one.

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <source_location>
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

/// The counters of a tile, in the layout of kernels/hopper/hopper_shared_tile.cuh.
struct TileCounters {
    std::uint32_t started;
    std::uint32_t arrived;
    std::uint32_t seen;

    bool operator==(const TileCounters&) const = default;
};
static_assert(sizeof(TileCounters) == sizeof(std::uint32_t) * kernels::hopper_tile_counters);

Stream& stream()
{
    static Stream instance;
    return instance;
}

struct Result {
    HostArray d;
    std::vector<TileCounters> counters;  // of all possible tiles, for each CTA of the clusters
};

/// Launches `choice` with the counters `before` for each CTA of the first cluster, and zero for all others.
Result launch(DeviceOperands& operands, const KernelChoice& choice, const TileCounters& before)
{
    const detail::WorkspaceNeed need = detail::hopper_workspace(operands.problem(), choice);
    std::vector<TileCounters> counters(need.counters / kernels::hopper_tile_counters);
    const auto cluster_size = static_cast<std::size_t>(choice.cluster_m * choice.cluster_n * choice.cluster_k);
    std::fill_n(counters.begin(), cluster_size, before);
    auto partials =
        DeviceBuffer<std::byte>::from_host(stream(), std::vector<std::byte>(need.partial_bytes, std::byte{0xFF}));
    auto on_device = DeviceBuffer<TileCounters>::from_host(stream(), counters);
    HostArray d = operands.launch([&](const detail::GemmOperands& given, const Epilogue& epilogue) {
        detail::require_operands(stream(), given, epilogue, "hopper_sharing_test", std::source_location::current());
        CHECK(detail::launch_hopper(stream(), detail::problem_of(given, epilogue), choice,
                                    detail::arguments_of(given, epilogue),
                                    {.partials = reinterpret_cast<float*>(partials.data()),
                                     .arrivals = reinterpret_cast<std::uint32_t*>(on_device.data())})
                  .status == cudaSuccess);
    });
    on_device.copy_to(counters);
    return {std::move(d), std::move(counters)};
}

/// Number of CTAs that shared a tile, and of those that stayed to add it up.
struct Stayed {
    unsigned ctas = 0;
    unsigned stayed = 0;

    void operator+=(const Stayed& other)
    {
        ctas += other.ctas;
        stayed += other.stayed;
    }
};

/// One tile, which all clusters share.
Stayed check(const HopperKernel& kernel, std::size_t config, unsigned sharers, std::uint8_t layers, bool by_columns)
{
    GemmCase gemm;
    gemm.m = kernel.tile_m - 3;
    gemm.n = kernel.tile_n;
    gemm.k = std::int64_t{sharers} * layers * kernel.block_k;
    gemm.input = ElementType::bf16;
    gemm.b.row_major = false;
    gemm.d.row_major = !by_columns;
    if (kernel.copies) {
        gemm.a.padding = 1;
    }
    const GemmData data = GemmData::make(gemm, Guards::front_only, seed());
    DeviceOperands operands(stream(), gemm, data);
    const KernelChoice choice{.variant = Variant::hopper,
                              .config = static_cast<std::uint8_t>(config),
                              .cluster_k = layers,
                              .swapped = by_columns,
                              .stream_k = true,
                              .clusters = static_cast<std::uint16_t>(sharers)};
    const std::string name = fmt::format("{}, {} clusters of {} CTAs that split K, {}", kernel.name, sharers, layers,
                                         by_columns ? "swapped" : "not swapped");
    CAPTURE(name);
    REQUIRE(detail::is_hopper_choice_valid(operands.problem(), device(), choice));

    const Result usual = launch(operands, choice, {});
    if (const auto wrong = find_wrong_element(gemm, data, usual.d, summation_of(Variant::hopper, gemm))) {
        report_failure(gemm.size(), name, *wrong);
    }
    CHECK((usual.counters == std::vector<TileCounters>(usual.counters.size())));

    // With a count that can never be right, none stays.
    const TileCounters too_many{.started = 0x10000, .arrived = 0, .seen = 0};
    const Result none = launch(operands, choice, too_many);
    CHECK(none.d.bytes() == usual.d.bytes());
    for (std::size_t layer = 0; layer < layers; ++layer) {
        CHECK((none.counters[layer] == too_many));
    }

    // The CTAs that stay count themselves. If the last of them does not recognize that it is the last, the counters are
    // not reset.
    const Result some = launch(operands, choice, {.started = 0, .arrived = 0, .seen = 0x10000});
    CHECK(some.d.bytes() == usual.d.bytes());
    Stayed result;
    for (std::size_t layer = 0; layer < layers; ++layer) {
        const TileCounters& after = some.counters[layer];
        const unsigned stayed = after.seen - 0x10000;
        CHECK(stayed <= sharers);
        CHECK(after.arrived == (stayed == 0 ? 0 : stayed << 16U | sharers));
        CHECK(after.started == 0);
        result.ctas += sharers;
        result.stayed += stayed;
    }
    return result;
}

}  // namespace

TEST_CASE("a shared tile has the same bits, whichever of its sharers sum it up")
{
    if (!is_hopper_here()) {
        return;
    }
    const auto table = kernels::hopper_kernels(2);
    Stayed all;
    for (std::size_t config = 0; config < table.size(); ++config) {
        if (!table[config].shares_tiles) {
            continue;
        }
        for (const bool by_columns : {false, true}) {
            if (by_columns && quick()) {
                continue;
            }
            for (const unsigned sharers : {2U, 5U, 33U}) {
                all += check(table[config], config, sharers, 1, by_columns);
            }
            if (table[config].has_layers()) {
                all += check(table[config], config, 3, 2, by_columns);
                all += check(table[config], config, 2, 8, by_columns);
            }
        }
    }
    MESSAGE(all.stayed << " of " << all.ctas << " stayed");
    CHECK(all.stayed > 0);
    // More clusters than fit at once: the first cannot stay, and must not.
    for (std::size_t config = 0; config < table.size(); ++config) {
        if (table[config].name == "Tile128x64") {
            const auto room = static_cast<unsigned>(device().sm_count / 2);
            const Stayed crowd = check(table[config], config, 2 * room + 3, 2, false);
            MESSAGE(crowd.stayed << " of " << crowd.ctas << " stayed");
            CHECK(crowd.stayed <= 2 * room);
        }
    }
}

TEST_CASE("a caller's workspace may hold anything, and a launch without one is right, too")
{
    if (!is_hopper_here()) {
        return;
    }
    for (const bool repacks : {false, true}) {
        GemmCase gemm;
        gemm.m = repacks ? 1024 : 64;
        gemm.n = repacks ? 1032 : 64;
        gemm.k = repacks ? 512 : 24576;
        gemm.input = ElementType::bf16;
        gemm.a.padding = repacks ? 1 : 0;
        gemm.b.padding = repacks ? 1 : 0;
        const GemmData data = GemmData::make(gemm, Guards::front_only, seed());
        DeviceOperands operands(stream(), gemm, data);
        const GemmPlan plan = GemmPlan::prepare(Device::current(), operands.problem(), Variant::hopper);
        CAPTURE(plan.explain());
        REQUIRE(plan.workspace_bytes() > 0);
        DeviceBuffer<std::byte> scratch(stream(), plan.workspace_bytes());
        const auto check_launch = [&](const char* name, const Workspace& workspace) {
            scratch.fill(stream(), std::byte{0xFF});
            const HostArray d = operands.launch([&](const detail::GemmOperands& given, const Epilogue& epilogue) {
                Gemm::launch(stream(), given.a, given.b, given.d, epilogue, Variant::hopper, workspace);
            });
            if (const auto wrong = find_wrong_element(gemm, data, d, summation_of(Variant::hopper, gemm))) {
                report_failure(gemm.size(), name, *wrong);
            }
        };
        check_launch("the first time", scratch);
        check_launch("again", scratch);
        check_launch("too small", scratch.subspan(0, scratch.size() - 1));
        check_launch("none", Workspace::at_most(0));
    }
}

int main(int argc, char** argv) { return run_tests(argc, argv, Needs::device); }
