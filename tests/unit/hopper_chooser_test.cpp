/// The choice of a Hopper configuration, of what is copied or repacked for it, and of its workspace.

#include "gemm/hopper/hopper_chooser.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <vector>

#include "clean_runtime.hpp"
#include "gemm/hopper/hopper_cycles.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/hopper/hopper_measured.hpp"
#include "gemm/hopper/hopper_repack.hpp"
#include "gemm/variant_chooser.hpp"
#include "variant_problems.hpp"

using namespace tessera;
using namespace tessera::test;

namespace {

/// A layer of a model: bf16, A and B contiguous along K.
GemmProblem bf16_layer(std::int64_t m, std::int64_t n, std::int64_t k)
{
    GemmProblem problem = problem_of(m, n, k);
    problem.input = problem.output = ElementType::bf16;
    problem.b.row_major = false;
    return detail::resolved(problem);
}

}  // namespace

TEST_CASE("on 9.0, exactly the operands that TMA or wgmma cannot use are copied or repacked")
{
    const DeviceProperties device = device_of(9, 0);
    for (const ElementType type : {ElementType::bf16, ElementType::tf32, ElementType::f8e4m3}) {
        const auto table = kernels::hopper_kernels(size_of(type));
        if (table.empty()) {
            MESSAGE("skipped: this build has no code for compute capability 9.0");
            return;
        }
        GemmProblem aligned = problem_of(48, 40, 64);
        aligned.input = type;
        aligned.b.row_major = false;
        const auto copies = [&](GemmProblem problem) {
            problem = detail::resolved(problem);
            CHECK(GemmPlan::refusal(problem, device, Variant::hopper).empty());
            const detail::KernelChoice chosen = detail::choose_hopper(problem, device);
            CHECK(detail::is_hopper_choice_valid(problem, device, chosen));
            const bool by_threads = detail::repacked_bytes(problem) > 0;
            bool some_copy = false;
            bool some_load = false;
            for (const detail::KernelChoice& candidate : detail::hopper_candidates(problem, device)) {
                const bool candidate_copies = table[candidate.config].copies;
                (candidate_copies ? some_copy : some_load) = true;
                CHECK(detail::hopper_workspace(problem, candidate).copy_bytes ==
                      (candidate_copies ? 0 : detail::repacked_bytes(problem)));
            }
            CHECK(some_copy == by_threads);
            CHECK(some_load);
            CHECK(table[chosen.config].copies == by_threads);  // a product this small is not repacked
            return by_threads;
        };
        CHECK_FALSE(copies(aligned));
        for (const auto operand : {&GemmProblem::a, &GemmProblem::b}) {
            GemmProblem problem = aligned;
            (problem.*operand).address_alignment = 8;
            CHECK(copies(problem));
            problem = aligned;
            (problem.*operand).leading_dimension = 65;
            CHECK(copies(problem));
            (problem.*operand).leading_dimension = 80;
            CHECK_FALSE(copies(problem));
            problem.batches = 2;
            problem.a.batch_stride = problem.b.batch_stride = 1 << 20;
            CHECK_FALSE(copies(problem));
            (problem.*operand).batch_stride += 1;
            CHECK(copies(problem));
            problem = aligned;
            (problem.*operand).row_major = !(problem.*operand).row_major;
            CHECK(copies(problem) == (size_of(type) != 2));
        }
    }
}

TEST_CASE("an empty D has no Hopper configuration, however long K is")
{
    const DeviceProperties device = device_of(9, 0);
    for (const std::int64_t k : {0, 64, 16384}) {
        for (GemmProblem problem : {problem_of(0, 64, k), problem_of(64, 0, k), problem_of(0, 0, k)}) {
            problem.input = ElementType::bf16;
            problem = detail::resolved(problem);
            CAPTURE(problem.describe());
            CHECK(detail::hopper_candidates(problem, device).empty());
            CHECK_FALSE(detail::is_hopper_choice_valid(
                problem, device, {.variant = Variant::hopper, .cluster_k = 2, .stream_k = true, .clusters = 2}));
            CHECK(!GemmPlan::explain(problem, device).empty());
            CHECK(!GemmPlan::explain(problem, device_of(10, 0)).empty());
        }
    }
}

TEST_CASE("on 9.0, repacking and its workspace follow from the product's size")
{
    const DeviceProperties device = device_of(9, 0);
    const auto table = kernels::hopper_kernels(2);
    if (table.empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    const auto odd = [](std::int64_t size, ElementType type) {
        GemmProblem problem = problem_of(size, size, size);
        problem.input = type;
        problem.b.row_major = false;
        problem.a.leading_dimension = problem.b.leading_dimension = size + 1;
        return detail::resolved(problem);
    };
    const auto copies = [&](const GemmProblem& problem) {
        return kernels::hopper_kernels(size_of(problem.input))[detail::choose_hopper(problem, device).config].copies;
    };
    const auto described = [&](const GemmProblem& problem) {
        return detail::describe_hopper(problem, detail::choose_hopper(problem, device));
    };
    for (const ElementType type : {ElementType::bf16, ElementType::tf32, ElementType::f8e4m3}) {
        CHECK(copies(odd(32, type)));
        CHECK_FALSE(copies(odd(4096, type)));
    }

    // Lines of the copies are multiples of 128 bytes.
    GemmProblem large = odd(4096, ElementType::bf16);
    CHECK(detail::repacked_bytes(large) == 2 * 4096 * 8192);
    CHECK(described(large).find("A and B repacked first") != std::string::npos);
    CHECK(detail::hopper_workspace(large, detail::choose_hopper(large, device)).copy_bytes == 2 * 4096 * 8192);
    large.k = 4000;
    CHECK(detail::repacked_bytes(large) == 2 * 4096 * 8064);
    large.a.row_major = false;  // 16-bit operands keep their order
    CHECK(detail::repacked_bytes(large) == 4000 * 8192 + 4096 * 8064);

    // Only the operand that needs it, under the user's name for it. All its matrices are copied, or one if it is
    // shared.
    for (const bool d_row_major : {true, false}) {
        GemmProblem one = odd(4096, ElementType::bf16);
        one.d.row_major = d_row_major;
        one.a.leading_dimension = 4096;
        CHECK(described(one).find(", B repacked first") != std::string::npos);
        one.batches = 5;
        one.a.batch_stride = one.b.batch_stride = 4096 * 4097;
        CHECK(detail::repacked_bytes(one) == 5 * 4096 * 8192);
        one.b.batch_stride = 0;
        CHECK(detail::repacked_bytes(one) == 4096 * 8192);
    }
    GemmProblem transposed = odd(4096, ElementType::f8e4m3);
    transposed.a.leading_dimension = transposed.b.leading_dimension = 4096;
    CHECK(detail::repacked_bytes(transposed) == 0);
    transposed.m = 1000;
    transposed.a.row_major = false;
    CHECK(detail::repacked_bytes(transposed) == 1000 * 4096);
    CHECK(described(transposed).find(", A repacked first") != std::string::npos);

    // The copies may use only a fraction of the device's memory.
    GemmProblem huge = odd(4096, ElementType::bf16);
    DeviceProperties smaller = device;
    smaller.memory_bytes = detail::repacked_bytes(huge) * detail::repacking_memory_share;
    CHECK_FALSE(table[detail::choose_hopper(huge, smaller).config].copies);
    --smaller.memory_bytes;
    const detail::KernelChoice within = detail::choose_hopper(huge, smaller);
    CHECK(table[within.config].copies);
    CHECK(detail::is_hopper_choice_valid(huge, smaller, within));
    CHECK_FALSE(detail::is_hopper_choice_valid(huge, smaller, detail::choose_hopper(huge, device)));
    huge.m = huge.n = huge.k = huge.batches = 0x7FFFFF00;  // more bytes than can be counted
    CHECK_FALSE(detail::may_repack(huge, device));
}

TEST_CASE("on 9.0, a product that streams one operand has work for nearly all SMs")
{
    const DeviceProperties h200 = device_of(9, 0);
    const auto table = kernels::hopper_kernels(size_of(ElementType::bf16));
    if (table.empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    // Without clusters, each ran on 72 to 112 SMs while the model let any number of SMs read at the full rate of memory. Clusters
    // of four need fewer: on an H200, 64x10240x5120 takes 30.2 us on 92 CTAs, and 32.3 us on 132 without clusters.
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{
             {8, 18432, 2304}, {8, 5120, 5120}, {16, 28672, 4096}, {32, 24576, 1536}, {64, 10240, 5120}}) {
        CAPTURE(fmt::format("{}x{}x{}", m, n, k));
        const detail::KernelChoice chosen = detail::choose_hopper(bf16_layer(m, n, k), h200);
        const int ctas = chosen.clusters * chosen.cluster_m * chosen.cluster_n * chosen.cluster_k;
        CHECK(ctas / table[chosen.config].ctas >= 90);
    }
}

TEST_CASE("on 9.0, clusters share the operand with which all CTAs of a short product begin")
{
    const DeviceProperties h200 = device_of(9, 0);
    if (kernels::hopper_kernels(size_of(ElementType::bf16)).empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    const auto chosen = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
        return detail::choose_hopper(bf16_layer(m, n, k), h200);
    };
    // On an H200, 5449x80x56 takes 2.9 us without clusters and 2.5 in clusters of 4x1; 35x15168x64 3.2 and 3.0 in 1x4.
    CHECK(chosen(5449, 80, 56).cluster_m == 4);
    CHECK(chosen(35, 15168, 64).cluster_n == 4);
    CHECK(chosen(1024, 1024, 1024).cluster_m == 1);  // 16 stages: 6.0 us on 128 CTAs, 7.5 on 64 that start sooner
    CHECK(chosen(1024, 1024, 1024).clusters == 128);
}

TEST_CASE("on 9.0, stream-K divides only what L2 holds, and a choice is remembered for its own L2")
{
    DeviceProperties h200 = device_of(9, 0);
    if (kernels::hopper_kernels(size_of(ElementType::bf16)).empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    const auto uses_stream_k = [&](std::int64_t m, std::int64_t n, std::int64_t k) {
        return detail::choose_hopper(bf16_layer(m, n, k), h200).stream_k;
    };
    const std::size_t own = h200.l2_cache_bytes;
    CHECK_FALSE(uses_stream_k(2048, 13312, 16384));  // twice as slow: each cluster reads its operands from memory
    CHECK_FALSE(uses_stream_k(8192, 3584, 18944));
    for (const auto& [m, n, k] : std::vector<std::array<std::int64_t, 3>>{{512, 7168, 65536}, {1024, 3584, 65536}}) {
        CAPTURE(fmt::format("{}x{}x{}", m, n, k));
        CHECK_FALSE(uses_stream_k(m, n, k));
        h200.l2_cache_bytes = std::size_t{1} << 40U;
        CHECK(uses_stream_k(m, n, k));
        h200.l2_cache_bytes = own;
        CHECK_FALSE(uses_stream_k(m, n, k));
    }
    CHECK(uses_stream_k(256, 256, 65536));  // one cluster's tile is all of D: nothing is read twice
}

TEST_CASE("on 9.0, a large product with an activation runs on a kernel that has code of its own for it")
{
    const DeviceProperties device = device_of(9, 0);
    const auto table = kernels::hopper_kernels(2);
    if (table.empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    CHECK(std::ranges::any_of(table, [](const auto& kernel) { return kernel.streams && !kernel.streams_parts; }));
    GemmProblem problem = problem_of(16384, 8192, 2048);
    problem.input = problem.output = ElementType::bf16;
    problem.b.row_major = false;
    problem.bias = BiasAxis::per_column;
    for (const Activation activation : {Activation::gelu, Activation::silu}) {
        problem.activation = activation;
        const detail::KernelChoice chosen = detail::choose_hopper(detail::resolved(problem), device);
        CHECK(table[chosen.config].streams_parts);
    }
}

TEST_CASE(
    "on 9.0, lines of a column-major A that begin inside a sector cost narrow tiles most, which load A more often")
{
    const DeviceProperties device = device_of(9, 0);
    const auto table = kernels::hopper_kernels(2);
    if (table.empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    const auto least_cycles = [&](std::int64_t m, std::string_view config) {
        GemmProblem problem = problem_of(m, 12160, 512);
        problem.input = problem.output = ElementType::bf16;
        problem.a.row_major = problem.b.row_major = false;
        problem = detail::resolved(problem);
        double least = std::numeric_limits<double>::infinity();
        for (const detail::KernelChoice& choice : detail::hopper_candidates(problem, device)) {
            if (table[choice.config].name == config && !choice.swapped) {
                least = std::min(least, detail::expected_hopper_cycles(problem, device, choice));
            }
        }
        return least;
    };
    const auto cost = [&](std::string_view config) { return least_cycles(24, config) / least_cycles(32, config); };
    CHECK(cost("Light64x64") > cost("Tile128x192"));
    CHECK(cost("Light64x64") > 1);
}

TEST_CASE(
    "on 9.0, each measured configuration is chosen for its layer, and for as many rows less as have the same tiles")
{
    const DeviceProperties device = device_of(9, 0);
    if (kernels::hopper_kernels(2).empty()) {
        MESSAGE("skipped: this build has no code for compute capability 9.0");
        return;
    }
    const auto layer = [](std::int64_t m, const detail::MeasuredChoice& measured) {
        GemmProblem problem = problem_of(m, measured.n, measured.k);
        problem.input = problem.output = ElementType::bf16;
        problem.b.row_major = false;
        return problem;
    };
    const auto runs_measured = [&](const GemmProblem& problem, const DeviceProperties& on) {
        return GemmPlan::explain(problem, on).find(", measured on an H200\n") != std::string::npos;
    };
    REQUIRE(!detail::measured_choices().empty());
    for (const detail::MeasuredChoice& measured : detail::measured_choices()) {
        GemmProblem problem = layer(measured.m, measured);
        CAPTURE(problem.describe());
        const GemmProblem resolved = detail::resolved(problem);
        const detail::KernelChoice choice = detail::choose_hopper(resolved, device);
        CHECK(detail::is_measured(measured, choice));
        CHECK(detail::is_hopper_choice_valid(resolved, device, choice));
        CHECK(runs_measured(problem, device));

        // The rows of an entry end where tiles, or half of the rows of one, do.
        const std::int64_t fewest = measured.m <= 64 ? measured.m / 2 + 1 : measured.m - 63;
        CHECK(runs_measured(layer(fewest, measured), device));
        CHECK(detail::find_measured(detail::resolved(layer(fewest - 1, measured)), device) != &measured);
        CHECK(detail::find_measured(detail::resolved(layer(measured.m + 1, measured)), device) != &measured);

        // What was not measured is left to the model: other devices, orders, types and epilogues.
        DeviceProperties smaller = device;
        smaller.sm_count = 114;
        CHECK_FALSE(runs_measured(problem, smaller));
        for (const auto change :
             {+[](GemmProblem& other) { other.b.row_major = true; }, +[](GemmProblem& other) { other.has_c = true; },
              +[](GemmProblem& other) { other.output = ElementType::f32; },
              +[](GemmProblem& other) { other.a.address_alignment = 8; }}) {
            GemmProblem other = problem;
            change(other);
            CHECK(detail::find_measured(detail::resolved(other), device) == nullptr);
        }
        // Without a workspace, stream-K gives way.
        const detail::KernelChoice without = detail::choose_hopper(resolved, device, 0);
        CHECK(without.stream_k == false);
        CHECK((measured.stream_k || detail::is_measured(measured, without)));
    }
}
