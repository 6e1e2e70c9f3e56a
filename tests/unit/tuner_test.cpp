/// Gemm::tune with kernels whose time and result the test controls, and the use of the tuned choice by launches.

#include "tuning/tuner.hpp"

#include <cstring>
#include <limits>
#include <map>

#include "clean_runtime.hpp"
#include "gemm/hopper/hopper_launch.hpp"
#include "gemm/simt/simt_backend.hpp"
#include "gemm/variant_chooser.hpp"
#include "gemm/workspace.hpp"
#include "heap_count.hpp"
#include "kernels/gemm/gemm_arguments.hpp"
#include "support/variants.hpp"
#include "tessera/gemm_tuner.hpp"
#include "tuning/tuning_table.hpp"

using namespace tessera;
using tessera::detail::KernelChoice;
using tessera::test::CleanRuntime;

namespace {

struct Behaviour {
    double milliseconds = 1;
    float result = 1.0F;
};

struct TunerRuntime : CleanRuntime {
    TunerRuntime()
    {
        GemmTuningCache::clear();
        fake::keep_argument_bytes(sizeof(kernels::GemmArguments));
        fake::on_launch([this](const fake::Launch& launch) {
            if (const auto found = behaviours.find(launch.function); found != behaviours.end()) {
                run(launch, found->second);
                ++runs;
            }
        });
        fake::pass_time(1);  // from now on, time passes only when the test says so
    }
    ~TunerRuntime() { GemmTuningCache::clear(); }

    static void run(const fake::Launch& launch, const Behaviour& behaviour)
    {
        kernels::GemmArguments arguments;
        std::memcpy(&arguments, launch.argument.data(), sizeof arguments);
        auto* const d = static_cast<float*>(fake::contents_of(arguments.d));
        for (std::int64_t row = 0; row < arguments.m; ++row) {
            for (std::int64_t column = 0; column < arguments.n; ++column) {
                d[row * arguments.d_row_stride + column * arguments.d_column_stride] = behaviour.result;
            }
        }
        fake::pass_time(behaviour.milliseconds);
    }

    void behave(Variant variant, Behaviour behaviour)
    {
        behaviours[detail::simt_kernel_of(variant, detail::resolved(problem), device.properties()).function] =
            behaviour;
    }

    Device device{fake::h200};
    GemmProblem problem{.m = 64, .n = 48, .k = 32};
    std::map<const void*, Behaviour> behaviours;
    std::size_t runs = 0;  // of correct kernels, also in graphs
};

const TuningTrial& trial_of(const TuningResult& result, Variant variant)
{
    for (const TuningTrial& trial : result.trials) {
        if (trial.variant == variant) {
            return trial;
        }
    }
    throw std::runtime_error("no such trial");
}

}  // namespace

TEST_CASE_FIXTURE(TunerRuntime, "the fastest candidate wins, and launches and plans use it from then on")
{
    behave(Variant::simt_register_blocked, {2.0});
    behave(Variant::simt_tiled, {1.5});
    behave(Variant::simt_coarsened, {1.9});
    behave(Variant::simt_vectorized, {1.6});
    behave(Variant::simt_naive, {90.0});
    CHECK(GemmPlan::prepare(device, problem).variant() == Variant::simt_register_blocked);
    const TuningResult result = Gemm::tune(device, problem, {.rounds = 5});
    CHECK(result.best.variant == Variant::simt_tiled);
    CHECK(result.best.seconds == doctest::Approx(1.5e-3));
    CHECK(result.best.samples == 5);
    CHECK(result.untuned.variant == Variant::simt_register_blocked);
    CHECK(result.untuned.seconds == doctest::Approx(2e-3));
    REQUIRE(result.trials.size() == 5);
    CHECK(result.trials.front().variant == Variant::simt_tiled);
    CHECK(trial_of(result, Variant::simt_naive).outcome == TuningTrial::Outcome::pruned);
    CHECK(trial_of(result, Variant::simt_naive).samples <= 1);
    CHECK(trial_of(result, Variant::simt_coarsened).outcome == TuningTrial::Outcome::pruned);
    CHECK(trial_of(result, Variant::simt_vectorized).outcome == TuningTrial::Outcome::finalist);

    const GemmPlan plan = GemmPlan::prepare(device, problem);
    CHECK(plan.variant() == Variant::simt_tiled);
    CHECK(plan.explain().find(
              "why: measured 0 hours ago as the fastest: 1500.00 us; the untuned choice took 2000.00 us") !=
          std::string::npos);
    CHECK(GemmPlan::prepare(device, problem, Variant::simt_naive).variant() == Variant::simt_naive);
    GemmProblem other = problem;
    other.k += 1;
    CHECK(GemmPlan::prepare(device, other).variant() == Variant::simt_register_blocked);
    CHECK(GemmPlan::prepare(Device(fake::t4), problem).variant() == Variant::simt_register_blocked);

    const Stream stream;
    const DeviceBuffer<float> a(stream, 64 * 32);
    const DeviceBuffer<float> b(stream, 32 * 48);
    DeviceBuffer<float> d(stream, 64 * 48);
    Gemm::launch(stream, a.matrix(64, 32), b.matrix(32, 48), d.matrix(64, 48));
    CHECK(fake::launches().back().function ==
          detail::simt_kernel_of(Variant::simt_tiled, detail::resolved(problem), device.properties()).function);
}

TEST_CASE_FIXTURE(TunerRuntime, "a problem with two levels of batches is measured as one of its launches")
{
    GemmProblem levels = problem;
    levels.batches = 3;
    levels.outer_batches = 2;
    levels.a = {.batch_stride = 64 * 32, .outer_stride = 10'000};
    levels.b = {.batch_stride = 32 * 48, .outer_stride = 0};
    levels.d = {.batch_stride = 64 * 48, .outer_stride = 20'000};
    const std::string untuned = GemmPlan::explain(levels, device.properties());
    CHECK(untuned.find("as 2 launches of 3 matrices each") != std::string::npos);
    CHECK(untuned.find("why: measured") == std::string::npos);
    const TuningResult result = Gemm::tune(device, levels, {.rounds = 1});
    CHECK(result.problem.batches == 3);
    CHECK(result.problem.outer_batches == 1);
    CHECK(GemmPlan::prepare(device, levels).explain().find("why: measured") != std::string::npos);
    CHECK(GemmPlan::prepare(device, result.problem).explain().find("why: measured") != std::string::npos);
}

TEST_CASE_FIXTURE(TunerRuntime, "a kernel with a wrong result is never used, however fast")
{
    behave(Variant::simt_register_blocked, {2.0});
    behave(Variant::simt_tiled, {0.5, 1.01F});
    behave(Variant::simt_coarsened, {0.6, std::numeric_limits<float>::quiet_NaN()});
    behave(Variant::simt_vectorized, {0.7});
    behave(Variant::simt_naive, {1.0});
    const TuningResult result = Gemm::tune(device, problem, {.rounds = 4, .prune_ratio = 10});
    CHECK(result.best.variant == Variant::simt_vectorized);
    CHECK(trial_of(result, Variant::simt_tiled).outcome == TuningTrial::Outcome::wrong);
    CHECK(trial_of(result, Variant::simt_coarsened).outcome == TuningTrial::Outcome::wrong);
    CHECK(GemmPlan::prepare(device, problem).variant() == Variant::simt_vectorized);
}

TEST_CASE_FIXTURE(TunerRuntime, "a gain that may be chance does not replace the untuned choice")
{
    for (const Variant slow : {Variant::simt_naive, Variant::simt_vectorized, Variant::simt_coarsened}) {
        behave(slow, {90.0});
    }
    behave(Variant::simt_register_blocked, {2.0});
    behave(Variant::simt_tiled, {1.995});
    CHECK(Gemm::tune(device, problem, {.rounds = 3}).best.variant == Variant::simt_register_blocked);
    behave(Variant::simt_tiled, {1.98});
    CHECK(Gemm::tune(device, problem, {.rounds = 3}).best.variant == Variant::simt_tiled);
}

TEST_CASE_FIXTURE(TunerRuntime, "finalists are timed as long as requested, and are listed before the other candidates")
{
    behave(Variant::simt_register_blocked, {2.0});
    behave(Variant::simt_tiled, {1.5});
    for (const Variant slow : {Variant::simt_naive, Variant::simt_vectorized, Variant::simt_coarsened}) {
        behave(slow, {90.0});
    }
    const auto runs_of = [&](double sample_seconds) {
        const std::size_t before = runs;
        const TuningResult result = Gemm::tune(device, problem, {.rounds = 2, .sample_seconds = sample_seconds});
        bool pruned = false;
        for (const TuningTrial& trial : result.trials) {
            CHECK((trial.outcome == TuningTrial::Outcome::pruned || !pruned));
            pruned = pruned || trial.outcome == TuningTrial::Outcome::pruned;
        }
        CHECK(pruned);
        return runs - before;
    };
    const std::size_t shortly = runs_of(0);
    const std::size_t longer = runs_of(0.2);
    // Two samples of 0.2 s, each after as much untimed work: 400 runs of 2 ms and 533 of 1.5 ms, minus those of the
    // shortest samples.
    CHECK(longer > shortly + 700);
}

TEST_CASE_FIXTURE(TunerRuntime, "meaningless options are refused with their value, before anything is measured")
{
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    CHECK_ERROR(
        "tessera: invalid_argument in Gemm::tune\n  TuningOptions::sample_seconds is nan\n  try: 0 or more "
        "seconds",
        Gemm::tune(device, problem, {.sample_seconds = nan}));
    CHECK_ERROR(
        "tessera: invalid_argument in Gemm::tune\n  TuningOptions::time_limit_seconds is -1\n  try: 0 for no "
        "limit, or more than 0 seconds",
        Gemm::tune(device, problem, {.time_limit_seconds = -1}));
    CHECK_ERROR(
        "tessera: invalid_argument in Gemm::tune\n  TuningOptions::prune_ratio is 0.5\n  try: 1 or more: candidates "
        "slower than this factor times the fastest are dropped",
        Gemm::tune(device, problem, {.prune_ratio = 0.5}));
    for (const TuningOptions& options :
         {TuningOptions{.sample_seconds = -1e-9}, TuningOptions{.prune_ratio = nan}, TuningOptions{.prune_ratio = -1},
          TuningOptions{.time_limit_seconds = nan},
          TuningOptions{.time_limit_seconds = -std::numeric_limits<double>::infinity()}}) {
        CHECK(test::error_of([&] { static_cast<void>(Gemm::tune(device, problem, options)); }).has_value());
    }
    CHECK(fake::launches().empty());
}

TEST_CASE_FIXTURE(TunerRuntime, "a time limit beyond the clock's range means no limit")
{
    behave(Variant::simt_register_blocked, {2.0});
    for (const double limit : {0.0, 3600.0, 1e10, 1e300, std::numeric_limits<double>::infinity()}) {
        CAPTURE(limit);
        CHECK(Gemm::tune(device, problem, {.rounds = 4, .time_limit_seconds = limit}).best.samples == 4);
    }
    CHECK(Gemm::tune(device, problem, {.rounds = 4, .time_limit_seconds = 1e-9}).best.samples == 1);
}

TEST_CASE_FIXTURE(TunerRuntime, "sizes beyond 63 bits are refused, and nothing is allocated")
{
    problem = {.m = 1, .n = 1, .k = INT64_MAX / 4};
    CHECK_ERROR(
        "tessera: size_overflow in Gemm::tune\n  the total size of the operands of 1x1x2305843009213693951 (MxNxK) f32 "
        "-> f32, A "
        "row-major, B row-major, D row-major does not fit into 63 bits\n  try: a smaller "
        "problem",
        Gemm::tune(device, problem, {.rounds = 1}));
    problem = {.m = 3, .n = 8, .k = 8};
    problem.d.leading_dimension = (std::int64_t{1} << 61U) + 64;
    CHECK_ERROR(
        "tessera: size_overflow in Gemm::tune\n  D is 1 of 3x8 elements of 4 bytes, row-major with leading "
        "dimension 2305843009213694016 and batch stride 0: its size does not fit into 63 bits\n  try: compute extents, "
        "leading dimensions and strides in elements, and in std::int64_t from the start",
        Gemm::tune(device, problem, {.rounds = 1}));
    const auto refused = [&](GemmProblem changed) {
        const auto error = test::error_of([&] { static_cast<void>(Gemm::tune(device, changed, {.rounds = 1})); });
        CAPTURE(changed.describe());
        REQUIRE(error.has_value());
        CHECK(to_string(error->code()) == "size_overflow");
    };
    constexpr std::int64_t huge = std::int64_t{1} << 62U;
    refused({.m = huge, .n = 8, .k = 8});
    refused({.m = 8, .n = 8, .k = INT64_MAX});
    refused({.m = 8, .n = huge, .k = 8, .input = ElementType::f8e4m3});
    refused({.m = 8, .n = 8, .k = 8, .batches = huge});
    refused({.m = 8, .n = 8, .k = 8, .batches = 3, .a = {.batch_stride = huge}});
    refused({.m = 8, .n = 8, .k = 8, .batches = 2, .b = {.leading_dimension = huge, .batch_stride = 1}});
    refused({.m = 8, .n = 8, .k = 8, .batches = INT64_MAX / 64, .a = {.batch_stride = 0}});
    refused({.m = 1, .n = 1, .k = huge, .input = ElementType::f8e4m3});
    CHECK(fake::count("cudaMalloc") + fake::count("cudaMallocAsync") == 0);
    // Also before a plan is made.
    problem.m = INT64_MAX;
    CHECK_ERROR(
        "tessera: size_overflow in GemmPlan::prepare\n  A is 1 of 9223372036854775807x8 elements of 4 bytes, "
        "row-major with leading dimension 8 and batch stride 0: its size does not fit into 63 bits\n  try: "
        "compute extents, leading dimensions and strides in elements, and in std::int64_t from the start",
        GemmPlan::prepare(device, problem));
}

TEST_CASE_FIXTURE(TunerRuntime, "a kernel that writes nothing does not win")
{
    // No kernel runs: D keeps its poison, and the untuned choice wins.
    const TuningResult result = Gemm::tune(device, problem, {.rounds = 3});
    CHECK(result.best.variant == Variant::simt_register_blocked);
}

TEST_CASE_FIXTURE(TunerRuntime, "Hopper configurations are tried, those with shared tiles with a workspace")
{
    problem = {.m = 256, .n = 256, .k = 4096, .input = ElementType::bf16, .output = ElementType::bf16};
    const std::vector<KernelChoice> candidates = detail::all_candidates(detail::resolved(problem), device.properties());
    std::size_t hopper = 0;
    std::size_t mma = 0;
    std::size_t shared = 0;
    for (const KernelChoice& choice : candidates) {
        hopper += choice.variant == Variant::hopper ? 1 : 0;
        mma += choice.variant == Variant::mma_sync ? 1 : 0;
        shared += choice.variant == Variant::hopper && choice.stream_k ? 1 : 0;
    }
    CHECK(candidates.size() == hopper + mma + simt_variants().size());
    if (hopper == 0) {
        return;  // this build has no code for compute capability 9.0
    }
    CHECK(shared > 0);
    const TuningResult result = Gemm::tune(device, problem, {.rounds = 3});
    CHECK(result.trials.size() == candidates.size());
    for (const TuningTrial& trial : result.trials) {
        CAPTURE(trial.configuration);
        CHECK(trial.outcome != TuningTrial::Outcome::failed);
    }
    CHECK(result.best.variant == Variant::hopper);

    // A tuned choice with shared tiles is launched unchanged.
    for (const KernelChoice& choice : candidates) {
        if (choice.variant == Variant::hopper && choice.stream_k) {
            detail::store_tuned(detail::tuning_key(detail::resolved(problem), device.properties()),
                                {choice, 1e-6, 2e-6, detail::tuning_clock() + 60});
            const GemmPlan plan = GemmPlan::prepare(device, problem);
            const auto need = detail::hopper_workspace(detail::resolved(problem), choice);
            CHECK(plan.workspace_bytes() == detail::workspace_bytes(need));
            CHECK(plan.workspace_bytes() > 0);
            const Stream stream;
            const DeviceBuffer<bf16> a(stream, 256 * 4096);
            DeviceBuffer<bf16> d(stream, 256 * 256);
            fake::clear_calls();
            plan.launch(stream, a.matrix(256, 4096), a.matrix(4096, 256), d.matrix(256, 256));
            CHECK(fake::count("cudaMallocAsync") == 1);
            // Set once per kernel and device, which the tuner has done.
            CHECK(fake::count("cudaFuncSetAttribute") == 0);
            REQUIRE(fake::launches().size() == 1);
            CHECK(fake::launches()[0].grid.x ==
                  static_cast<unsigned>(choice.clusters * choice.cluster_m * choice.cluster_n * choice.cluster_k));
            break;
        }
    }
}

TEST_CASE_FIXTURE(TunerRuntime, "a stored choice that cannot run the problem is ignored")
{
    GemmProblem aligned{.m = 64, .n = 64, .k = 64, .input = ElementType::bf16};
    const detail::TuningKey key = detail::tuning_key(detail::resolved(aligned), device.properties());
    const Variant untuned = GemmPlan::prepare(device, aligned).variant();
    // Invalid choices that a file could contain: no such configuration, more CTAs than SMs, no clusters.
    for (const KernelChoice& nonsense : {KernelChoice{.variant = Variant::hopper, .config = 200, .clusters = 1},
                                         KernelChoice{.variant = Variant::hopper, .cluster_m = 2, .clusters = 5000},
                                         KernelChoice{.variant = Variant::hopper, .cluster_m = 0, .clusters = 1},
                                         KernelChoice{.variant = Variant::hopper, .cluster_k = 0, .clusters = 1},
                                         KernelChoice{.variant = Variant::hopper, .band = 0, .clusters = 1}}) {
        GemmTuningCache::clear();
        detail::store_tuned(key, {nonsense, 1e-6, 2e-6, 1});
        CHECK(detail::find_tuned(key).has_value());
        CHECK_FALSE(detail::find_valid_tuned(detail::resolved(aligned), device.properties()).has_value());
        CHECK(GemmPlan::prepare(device, aligned).variant() == untuned);
    }
}

TEST_CASE_FIXTURE(TunerRuntime, "problems that differ in a property that affects speed have different keys")
{
    const DeviceProperties& h200 = device.properties();
    problem.batches = 2;
    problem.a.batch_stride = 64 * 32;
    problem.b.batch_stride = 32 * 48;
    problem.d.batch_stride = 64 * 48;
    const auto key = [&](const GemmProblem& p) { return detail::tuning_key(detail::resolved(p), h200); };
    const std::vector<void (*)(GemmProblem&)> changes{
        [](GemmProblem& p) { p.m = 63; },
        [](GemmProblem& p) { p.n = 47; },
        [](GemmProblem& p) { p.k = 31; },
        [](GemmProblem& p) { p.batches = 3; },
        [](GemmProblem& p) { p.input = ElementType::bf16; },
        [](GemmProblem& p) { p.output = ElementType::bf16; },
        [](GemmProblem& p) { p.a.row_major = false; },
        [](GemmProblem& p) { p.b.row_major = false; },
        [](GemmProblem& p) { p.d.row_major = false; },
        [](GemmProblem& p) { p.a.address_alignment = 8; },
        [](GemmProblem& p) { p.b.leading_dimension = 49; },
        [](GemmProblem& p) { p.d.batch_stride += 1; },
        [](GemmProblem& p) { p.a.batch_stride = 0; },
        [](GemmProblem& p) { p.b.batch_stride = 0; },
        [](GemmProblem& p) { p.has_c = true; },
        [](GemmProblem& p) { p.bias = BiasAxis::per_row; },
        [](GemmProblem& p) { p.activation = Activation::gelu; },
        [](GemmProblem& p) { p.gating = Gating::interleaved; },
        [](GemmProblem& p) { p.row_scales = true; },
        [](GemmProblem& p) { p.column_scales = true; },
    };
    for (std::size_t i = 0; i < changes.size(); ++i) {
        CAPTURE(i);
        GemmProblem changed = problem;
        changes[i](changed);
        CHECK_FALSE(key(changed) == key(problem));
    }
    GemmProblem same = problem;
    same.a.leading_dimension = 64;  // still a multiple of 16 bytes
    same.b.address_alignment = 16;
    CHECK(key(same) == key(problem));
    GemmProblem of_bf16 = problem;
    of_bf16.input = ElementType::bf16;
    same = of_bf16;
    same.f16_accumulation = F16Accumulation::in_f16;  // has no effect
    CHECK(key(same) == key(of_bf16));
    GemmProblem of_f16 = problem;
    of_f16.input = ElementType::f16;
    same = of_f16;
    same.f16_accumulation = F16Accumulation::in_f16;
    CHECK_FALSE(key(same) == key(of_f16));
    DeviceProperties fewer = h200;
    fewer.sm_count -= 1;
    CHECK_FALSE(detail::tuning_key(detail::resolved(problem), fewer) == key(problem));
}

TEST_CASE_FIXTURE(TunerRuntime, "a lookup allocates nothing")
{
    for (std::int64_t m = 1; m < 3000; ++m) {  // more than there are buckets
        problem.m = m;
        detail::store_tuned(detail::tuning_key(detail::resolved(problem), device.properties()),
                            {KernelChoice{.variant = Variant::simt_tiled}, 1e-6, 2e-6, m});
    }
    CHECK(GemmTuningCache::size() == 2999);
    problem.m = 1234;
    const GemmProblem resolved = detail::resolved(problem);
    const long before = test::heap_allocations();
    const auto found = detail::find_valid_tuned(resolved, device.properties());
    CHECK(test::heap_allocations() == before);
    REQUIRE(found.has_value());
    CHECK(found->when == 1234);
}

TEST_CASE_FIXTURE(TunerRuntime, "every kind of epilogue and layout can be tuned, and an empty D cannot")
{
    problem = {.m = 24, .n = 40, .k = 16, .batches = 3, .input = ElementType::f16, .output = ElementType::f16};
    problem.a = {.row_major = false, .leading_dimension = 25, .batch_stride = 500, .address_alignment = 2};
    problem.b = {.row_major = true, .leading_dimension = 0, .batch_stride = 0};
    problem.d = {.row_major = false, .leading_dimension = 32, .batch_stride = 0};
    problem.has_c = true;
    problem.bias = BiasAxis::per_column;
    problem.activation = Activation::silu;
    problem.row_scales = true;
    problem.column_scales = true;
    const TuningResult result = Gemm::tune(device, problem, {.rounds = 3});
    CHECK(result.problem.d.batch_stride == 32 * 40);
    problem.n = 0;
    const auto error = test::error_of([&] { static_cast<void>(Gemm::tune(device, problem)); });
    REQUIRE(error.has_value());
    CHECK(error->code() == ErrorCode::invalid_argument);
}

TEST_CASE("whichever call of a measurement fails, nothing leaks")
{
    const GemmProblem problem{.m = 16, .n = 16, .k = 16};
    int errors = 0;
    for (int nth = 1;; nth += 7) {
        fake::reset();
        GemmTuningCache::clear();
        static_cast<void>(dropped_errors());
        fake::fail_call(nth, cudaErrorMemoryAllocation);
        const auto error =
            test::error_of([&] { static_cast<void>(Gemm::tune(Device(fake::h200), problem, {.rounds = 1})); });
        errors += error.has_value() ? 1 : 0;
        CHECK(fake::live() == fake::Live{});
        CHECK(fake::misuses() == std::vector<std::string>{});
        static_cast<void>(cudaGetLastError());
        if (!fake::fault_occurred()) {
            CHECK_FALSE(error.has_value());
            break;
        }
    }
    CHECK(errors > 5);
    fake::reset();
    GemmTuningCache::clear();
    static_cast<void>(dropped_errors());
}
